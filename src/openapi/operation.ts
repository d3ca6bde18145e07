import type { z } from 'zod';
import type { Deprecation } from '../deprecation.js';
import { appRouter } from '../router.js';
import type { OperationMeta } from '../trpc.js';
import { errorResponses, listErrorStatuses, nameResponse, type Traits } from './error-responses.js';
import { COMMON_HEADERS, DEPRECATION_HEADERS, type HeaderName, refer } from './response-headers.js';

type Schema = Readonly<Record<string, unknown>> & { readonly examples?: readonly unknown[] };
export type Schemas = Readonly<Record<string, Schema>>;

interface Media {
  readonly 'application/json': { readonly schema: Schema };
}

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly schema: Schema;
}

/** An operation as trpc-to-openapi writes it, as far as it is read here. */
export interface GeneratedOperation {
  readonly operationId: string;
  readonly description?: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Media };
  readonly responses: { readonly 200: { readonly description: string; readonly content: Media } };
}

type Procedures = Record<string, { readonly _def: { meta: OperationMeta; inputs: readonly z.ZodType[] } }>;

/** What the operations take as bodies, by name: trpc-to-openapi writes it into each operation. */
export function collectBodies(operations: readonly GeneratedOperation[]): Schemas {
  return Object.fromEntries(
    operations.flatMap(({ operationId, requestBody }) =>
      requestBody === undefined
        ? []
        : [[nameBody(operationId), requestBody.content['application/json'].schema]],
    ),
  );
}

/**
 * An operation with all that trpc-to-openapi cannot know of it.
 *
 * @param schemas the document's own, which hold the examples
 */
export function completeOperation(generated: GeneratedOperation, schemas: Schemas): object {
  const { description, parameters = [], requestBody, responses, ...rest } = generated;
  const { stability, deprecation } = findProcedure(generated.operationId).meta;
  const traits = readTraits(generated, deprecation);
  const body = { $ref: `#/components/schemas/${nameBody(generated.operationId)}` };
  return {
    ...rest,
    description: [description, deprecation && describeFarewell(deprecation)].filter(Boolean).join('\n\n'),
    ...(deprecation === undefined ? {} : { deprecated: true }),
    'x-stability': stability,
    ...(parameters.length === 0 ? {} : { parameters: parameters.map(liftDescription) }),
    ...(traits.hasBody ? { requestBody: { ...requestBody, content: toMedia(body, schemas) } } : {}),
    responses: {
      [traits.hasBody ? 201 : 200]: {
        description: responses[200].description,
        headers: refer(listHeaders(generated, traits)),
        content: toMedia(responses[200].content['application/json'].schema, schemas),
      },
      ...describeErrors(traits),
    },
  };
}

function findProcedure(operationId: string) {
  const procedure = (appRouter._def.procedures as unknown as Procedures)[operationId];
  if (procedure === undefined) throw new Error(`There is no procedure ${operationId}`);
  return procedure._def;
}

function nameBody(operationId: string): string {
  return String(findProcedure(operationId).inputs[0]?.meta()?.id);
}

function readTraits(operation: GeneratedOperation, deprecation: Deprecation | undefined): Traits {
  const { parameters = [], requestBody } = operation;
  const hasBody = requestBody !== undefined;
  return {
    hasBody,
    isDeprecated: deprecation !== undefined,
    isIdempotent: parameters.some(({ name }) => name === 'Idempotency-Key'),
    hasPathValue: parameters.some((parameter) => parameter.in === 'path'),
    hasInput: hasBody || parameters.some((parameter) => parameter.in === 'query'),
  };
}

/** What is posted is created, and what takes a cursor has a next page. */
function listHeaders({ parameters = [] }: GeneratedOperation, traits: Traits): HeaderName[] {
  const isPage = parameters.some(({ name }) => name === 'cursor');
  return [
    ...COMMON_HEADERS,
    ...(traits.hasBody ? (['Location'] as const) : []),
    ...(traits.isIdempotent ? (['Idempotency-Replayed'] as const) : []),
    ...(isPage ? (['NextPage'] as const) : []),
    ...(traits.isDeprecated ? DEPRECATION_HEADERS : []),
  ];
}

/**
 * By reference, except where a deprecated operation adds its headers. A method that the path does not answer and what
 * comes after the removal are no longer answers of that operation.
 */
function describeErrors(traits: Traits): Record<string, object> {
  return Object.fromEntries(
    listErrorStatuses(traits).map((status) => {
      const name = nameResponse(status);
      const shared = { $ref: `#/components/responses/${name}` };
      if (!traits.isDeprecated || status === 405 || status === 410) return [status, shared];
      const response = errorResponses[name];
      return [status, { ...response, headers: { ...response?.headers, ...refer(DEPRECATION_HEADERS) } }];
    }),
  );
}

function describeFarewell({ removal, successor }: Deprecation): string {
  return (
    `Deprecated: it is removed on ${removal.toISOString().replace('.000', '')} and answers 410 \`operation_removed\` ` +
    `from that instant. Use \`GET ${successor}\` instead.`
  );
}

/** Tools show a parameter's own description, not that of its schema. */
function liftDescription({ schema: { description, ...schema }, ...parameter }: Parameter): object {
  return { ...parameter, description, schema };
}

/** The example of a body is that of the schema it refers to. */
function toMedia(schema: Schema, schemas: Schemas): object {
  const name = String(schema.$ref).split('/').at(-1) ?? '';
  return { 'application/json': { schema, example: schemas[name]?.examples?.[0] } };
}
