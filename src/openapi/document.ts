import { generateOpenApiDocument } from 'trpc-to-openapi';
import { appRouter } from '../router.js';
import type { OperationMeta } from '../trpc.js';
import { errorResponses, errorSchema } from './error-responses.js';
import { collectBodies, completeOperation, type GeneratedOperation, type Schemas } from './operation.js';
import { headers } from './response-headers.js';

export interface DocumentOptions {
  /** Without a trailing slash */
  readonly publicUrl: string;
  readonly stagingUrl: string | undefined;
}

/** What trpc-to-openapi writes, as far as it is read here. */
interface Generated {
  readonly paths: Record<string, Record<string, GeneratedOperation>>;
  readonly components: { readonly schemas: Schemas };
}

const DESCRIPTION = `
The catalogue of a store's animals: list them, add one, fetch one.

Every operation needs an API key, sent as \`Authorization: Bearer <API_KEY>\`. Requests are counted per key, in a window
of a minute and one of a day; every response says what is left of the tighter one. Every error has the same three
members, and its \`code\` is made for programs.

Identifiers are int64, kept to ±(2^53 - 1), so that every language reads them exactly from JSON.
`.trim();

const TAGS = [
  { name: 'orders', description: 'Orders of animals' },
  { name: 'pets', description: 'The animals of the catalogue' },
];

/**
 * The OpenAPI 3.1 document of the REST face. Operations, parameters and schemas come from the procedures' zod
 * definitions through trpc-to-openapi; what it cannot know is added: statuses, headers, errors, examples, stability
 * and the farewell of deprecated operations.
 */
export function buildDocument({ publicUrl, stagingUrl }: DocumentOptions): object {
  const { openapi, info, ...generated } = generateOpenApiDocument<OperationMeta>(appRouter, {
    title: 'Animal Store Service',
    version: '1.0.0',
    description: DESCRIPTION,
    contact: { name: 'Animal Store Service', url: `${publicUrl}/docs` },
    license: { name: 'MIT', url: 'https://opensource.org/license/mit' },
    baseUrl: `${publicUrl}/v1`,
    openApiVersion: '3.1.0',
    securitySchemes: {
      bearerAuth: { type: 'http', scheme: 'bearer', description: 'The API key as a bearer token' },
    },
  });
  const { paths: operations, components } = generated as unknown as Generated;
  const schemas: Schemas = {
    ...collectBodies(Object.values(operations).flatMap((item) => Object.values(item))),
    ...omitForeignErrors(components.schemas),
    Error: errorSchema,
  };
  const paths = mapValues(operations, (item) =>
    mapValues(item, (operation) => completeOperation(operation, schemas)),
  );
  const own = `${publicUrl}/v1`;
  const servers =
    stagingUrl === undefined
      ? [{ url: own }]
      : [
          { url: own, description: 'Production' },
          { url: `${stagingUrl}/v1`, description: 'Staging' },
        ];
  return {
    openapi,
    info,
    servers,
    tags: TAGS,
    paths,
    components: { ...components, schemas, responses: pickReferenced(errorResponses, paths), headers },
  };
}

/** trpc-to-openapi describes errors of its own, which no client ever sees. */
function omitForeignErrors(schemas: Schemas): Schemas {
  return Object.fromEntries(Object.entries(schemas).filter(([name]) => !name.startsWith('error.')));
}

/** A response that every operation describes by itself is not shared by any. */
function pickReferenced<Response>(
  responses: Record<string, Response>,
  paths: object,
): Record<string, Response> {
  const text = JSON.stringify(paths);
  return Object.fromEntries(
    Object.entries(responses).filter(([name]) => text.includes(`"#/components/responses/${name}"`)),
  );
}

function mapValues<Value, Result>(
  values: Readonly<Record<string, Value>>,
  map: (value: Value) => Result,
): Record<string, Result> {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, map(value)]));
}
