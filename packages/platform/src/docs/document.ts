import { isDeepStrictEqual } from 'node:util';
import type { AnyTRPCRouter } from '@trpc/server';
import { generateOpenApiDocument } from 'trpc-to-openapi';
import { MIN_NOTICE_MONTHS } from '../contract/deprecation.js';
import { formatWindows, type LimitsPer, toPlanTable } from '../contract/plans.js';
import { MCP_PREFIX, REST_PREFIX } from '../contract/protocol.js';
import type { Definition } from '../definition/definition.js';
import { createErrorTable } from '../errors/error-table.js';
import { listOperations, type Operation } from '../operations/list-operations.js';
import { createRouter, type Resource } from '../operations/resource.js';
import { createErrorResponses } from './error-responses.js';
import {
  bodyName,
  capitalize,
  completeOperation,
  type GeneratedOperation,
  type Schema,
  type Schemas,
  SECURITY_SCHEME,
} from './operation.js';
import { createHeaders } from './response-headers.js';
import { applyOverride, describeDefaults, mapValues, openResponses } from './schemas.js';

export interface DocumentOptions {
  readonly definition: Definition;
  readonly resources: readonly Resource[];
  /** Without a trailing slash. */
  readonly publicUrl: string;
  readonly stagingUrl: string | undefined;
  /** The address for questions. Default: the reference page */
  readonly contactUrl?: string | undefined;
  /** Default: key */
  readonly limitsPer?: LimitsPer | undefined;
}

/** The members of trpc-to-openapi's document that are read here. */
interface Generated {
  readonly openapi: string;
  readonly info: object;
  readonly paths: Readonly<Record<string, Readonly<Record<string, GeneratedOperation>>>>;
  readonly components: { readonly schemas: Schemas };
}

/** The policy in short; docs/guides/compatibility.md has it in full. */
const COMPATIBILITY = `
Operations marked \`x-stability: stable\` or \`beta\` stay compatible within /v1. They may gain optional parameters, members, error
codes and headers, so clients must tolerate those they do not know. A stable operation is deprecated, by the headers
\`Deprecation\` and \`Sunset\` and in the changelog, at least ${MIN_NOTICE_MONTHS} months before it is removed. Experimental operations may
change in any release. The version of this document is that of the interface; the service's releases have their own.
`.trim();

/** Whose requests are counted together. With `owner`, keys without one count alone. */
const COUNTED = {
  key: 'Requests are counted per key',
  owner: 'Requests of all keys of an owner are counted together',
} as const satisfies Record<LimitsPer, string>;

const describe = (definition: Definition, limitsPer: LimitsPer) =>
  `
${definition.identity.description}

Every operation needs an API key, sent as \`Authorization: Bearer <API_KEY>\`. ${COUNTED[limitsPer]}, in a window
of ${formatWindows(definition)}; every response reports what is left of the tighter one. Every error has the same three
members; programs should rely on its \`code\`, not on its \`message\`.

With a test key, the header \`Prefer: error=CODE\` (RFC 7240) rehearses an error on any operation: that error is the response,
nothing runs, and the request counts as usual.

${toPlanTable(definition)}

The same operations, with the same key and limits, are typed procedures over tRPC, and tools for assistants at \`${MCP_PREFIX}\`, by
the Model Context Protocol.

Identifiers are int64, limited to ±(2^53 - 1), so that every language can read them exactly from JSON.

${COMPATIBILITY}
`.trim();

/**
 * The OpenAPI 3.1 document of the REST API. Operations, parameters and schemas come from the procedures' zod definitions
 * through trpc-to-openapi, which cannot know statuses, headers, errors, examples, stability and deprecation. These are
 * added here.
 */
export function buildDocument(options: DocumentOptions): object {
  const { definition, resources, publicUrl, stagingUrl } = options;
  const router = createRouter(resources);
  const headers = createHeaders(definition);
  const errors = createErrorResponses(createErrorTable(definition), headers);
  const { openapi, info, paths: generatedPaths, components } = generate(router, options);
  const operations = new Map(listOperations(router).map((operation) => [operation.name, operation]));
  const find = ({ operationId }: GeneratedOperation) => operations.get(operationId) as Operation;
  const generated = Object.values(generatedPaths).flatMap((item) => Object.values(item));
  // trpc-to-openapi describes its own errors, which no client ever sees.
  const ownSchemas = Object.entries(components.schemas).filter(([name]) => !name.startsWith('error.'));
  const bodies = collectBodies(generated, find, components.schemas);
  const schemas: Schemas = {
    ...bodies,
    ...Object.fromEntries(ownSchemas),
    Error: errors.errorSchema,
  };
  // In the order of the reference page
  const tags = resources.map(({ name, description }) => ({ name: capitalize(name), description }));
  const findTag = ({ operationId }: GeneratedOperation) =>
    tags[resources.findIndex(({ procedures }) => operationId in procedures)]?.name;
  const paths = mapValues(generatedPaths, (item) =>
    mapValues(item, (each) => completeOperation(each, find(each), findTag(each), schemas, errors)),
  );
  const responses = pickReferenced('responses', errors.errorResponses, paths);
  return {
    openapi,
    info,
    servers: listServers(publicUrl, stagingUrl),
    tags,
    paths,
    components: {
      ...components,
      schemas: openResponses(schemas, bodies),
      responses,
      headers: pickReferenced('headers', headers, [paths, responses]),
    },
  };
}

function generate(
  router: AnyTRPCRouter,
  { definition, publicUrl, contactUrl, limitsPer = 'key' }: DocumentOptions,
): Generated {
  const { title, interfaceVersion, license } = definition.identity;
  const document: unknown = generateOpenApiDocument(router, {
    title,
    version: interfaceVersion,
    description: describe(definition, limitsPer),
    contact: { name: title, url: contactUrl ?? `${publicUrl}/docs` },
    ...(license && { license }),
    baseUrl: publicUrl + REST_PREFIX,
    openApiVersion: '3.1.0',
    securitySchemes: {
      [SECURITY_SCHEME]: {
        type: 'http',
        scheme: 'bearer',
        description: 'The API key as a bearer token. Each operation names the scope that the key needs.',
      },
    },
  });
  return document as Generated;
}

function listServers(publicUrl: string, stagingUrl: string | undefined): object[] {
  const url = publicUrl + REST_PREFIX;
  if (stagingUrl === undefined) return [{ url }];
  return [
    { url, description: 'Production' },
    { url: stagingUrl + REST_PREFIX, description: 'Staging' },
  ];
}

/**
 * The request bodies by name; trpc-to-openapi inlines each into its operation.
 *
 * @throws TypeError when two operations give different bodies the same name
 */
function collectBodies(
  generated: readonly GeneratedOperation[],
  find: (operation: GeneratedOperation) => Operation,
  named: Schemas,
): Schemas {
  const bodies: Record<string, Schema> = {};
  const owners: Record<string, string> = {};
  for (const each of generated) {
    const { operationId, requestBody } = each;
    if (requestBody === undefined) continue;
    const operation = find(each);
    const name = bodyName(operation);
    const own = applyOverride(requestBody.content['application/json'].schema, operation);
    const schema = describeDefaults(own, named);
    if (!isDeepStrictEqual(bodies[name] ?? schema, schema))
      throw new TypeError(`${owners[name]} and ${operationId} have different bodies with the id ${name}`);
    bodies[name] = schema;
    owners[name] = operationId;
  }
  return bodies;
}

/** Linters reject components that nothing refers to. */
function pickReferenced(
  kind: 'responses' | 'headers',
  components: Readonly<Record<string, object>>,
  referring: object,
): Record<string, object> {
  const text = JSON.stringify(referring);
  return Object.fromEntries(
    Object.entries(components).filter(([name]) => text.includes(`"#/components/${kind}/${name}"`)),
  );
}
