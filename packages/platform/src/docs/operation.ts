import { IDEMPOTENCY_TTL_HOURS } from '../contract/bounds.js';
import { METHODS_WITH_BODY } from '../contract/protocol.js';
import type { OperationFeatures } from '../errors/error-table.js';
import { IDEMPOTENCY_KEY_FORM } from '../operations/idempotency-key.js';
import { isPage, type Operation } from '../operations/list-operations.js';
import { type ErrorResponses, responseName } from './error-responses.js';
import { COMMON_HEADERS, DEPRECATION_HEADERS, type HeaderName, headerRefs } from './response-headers.js';

export type Schema = Readonly<Record<string, unknown>> & { readonly examples?: readonly unknown[] };
export type Schemas = Readonly<Record<string, Schema>>;

interface Media {
  readonly 'application/json': { readonly schema: Schema };
}

interface DocumentParameter {
  readonly name: string;
  readonly in: string;
  readonly schema: Schema;
}

/** The members of trpc-to-openapi's operations that are read here. */
export interface GeneratedOperation {
  readonly operationId: string;
  readonly description?: string;
  readonly parameters?: readonly DocumentParameter[];
  readonly requestBody?: { readonly content: Media };
  readonly responses: { readonly 200: { readonly description: string; readonly content: Media } };
}

/** The name of the API key among the document's security schemes. */
export const SECURITY_SCHEME = 'bearerAuth';

const IDEMPOTENCY_KEY = {
  in: 'header',
  name: 'Idempotency-Key',
  description:
    `Makes the request safe to repeat: for ${IDEMPOTENCY_TTL_HOURS} hours the same key with the same body returns the first ` +
    `response again. Any ${IDEMPOTENCY_KEY_FORM}, such as a UUID.`,
  // No example, because the reference page would put it into every code sample, and a key is good for one request.
  schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[!-~]+$' },
};

/** The name of an operation's body among the schemas: its own id, or one derived from the operation's name. */
export function bodyName({ name, input }: Operation): string {
  const id = input?.meta()?.id;
  return typeof id === 'string' ? id : `${capitalize(name)}Body`;
}

export function capitalize(name: string): string {
  return name.slice(0, 1).toUpperCase() + name.slice(1);
}

/**
 * Adds to an operation what trpc-to-openapi cannot know.
 *
 * @param schemas the document's schemas, which hold the examples
 */
export function completeOperation(
  generated: GeneratedOperation,
  operation: Operation,
  tag: string | undefined,
  schemas: Schemas,
  errors: ErrorResponses,
): object {
  const { description, parameters: own = [], requestBody, responses, ...rest } = generated;
  const { stability, scope, idempotent, cost = 1 } = operation;
  const paragraphs = [
    description,
    isPage(operation)
      ? 'While more follow, the response has the address of the next page in `Link`.'
      : undefined,
    scope === 'any' ? 'Any key may call it.' : `Needs the scope \`${scope}\`.`,
    cost > 1 ? `Each call counts as ${cost} requests.` : undefined,
    describeDeprecation(operation),
  ];
  const parameters = [...own.map(liftDescription), ...(idempotent ? [IDEMPOTENCY_KEY] : [])];
  const body = { $ref: `#/components/schemas/${bodyName(operation)}` };
  return {
    ...rest,
    tags: [tag],
    description: paragraphs.filter(Boolean).join('\n\n'),
    ...markDeprecation(operation),
    'x-stability': stability,
    security: [{ [SECURITY_SCHEME]: scope === 'any' ? [] : [scope] }],
    ...(parameters.length > 0 && { parameters }),
    ...(requestBody && { requestBody: { ...requestBody, content: toMedia(body, schemas) } }),
    responses: {
      ...describeSuccess(operation, responses[200], schemas),
      ...describeErrors(errors, readFeatures(operation), operation.errors),
    },
  };
}

function readFeatures({ deprecation, idempotent, method, parameters, scope }: Operation): OperationFeatures {
  return {
    hasBody: METHODS_WITH_BODY.has(method),
    isDeprecated: deprecation !== undefined,
    isIdempotent: idempotent === true,
    hasPathParameters: parameters.some((parameter) => parameter.in === 'path'),
    needsScope: scope !== 'any',
  };
}

function describeSuccess(
  operation: Operation,
  { description, content }: GeneratedOperation['responses'][200],
  schemas: Schemas,
): object {
  const headers = headerRefs(listHeaders(operation));
  if (operation.output === undefined) return { 204: { description, headers } };
  const media = toMedia(content['application/json'].schema, schemas);
  return { [operation.success?.status ?? 200]: { description, headers, content: media } };
}

function listHeaders(operation: Operation): HeaderName[] {
  const { success, idempotent, deprecation } = operation;
  return [
    ...COMMON_HEADERS,
    ...(success?.location === undefined ? [] : (['Location'] as const)),
    ...(idempotent ? (['Idempotency-Replayed'] as const) : []),
    ...(isPage(operation) ? (['NextPage'] as const) : []),
    ...(deprecation === undefined ? [] : DEPRECATION_HEADERS),
  ];
}

/**
 * The error responses, by reference, unless the operation has codes of its own or is deprecated. Deprecation adds
 * headers, except to a 405 and a 410.
 */
function describeErrors(
  { listErrorStatuses, describeOwnErrors, errorResponses }: ErrorResponses,
  features: OperationFeatures,
  declared: Operation['errors'],
): Record<string, object> {
  return Object.fromEntries(
    listErrorStatuses(features, declared).map((status) => {
      const name = responseName(status);
      const own = describeOwnErrors(status, features, declared);
      const asShared = own ?? { $ref: `#/components/responses/${name}` };
      if (!features.isDeprecated || status === 405 || status === 410) return [status, asShared];
      const response = own ?? errorResponses[name];
      return [status, { ...response, headers: { ...response?.headers, ...headerRefs(DEPRECATION_HEADERS) } }];
    }),
  );
}

/** Adds the dates for programs, such as the compatibility check. Other tools read `x-sunset`, too. */
function markDeprecation({ deprecation }: Operation): object {
  if (deprecation === undefined) return {};
  const { since, removal } = deprecation;
  return { deprecated: true, 'x-deprecated-since': toInstant(since), 'x-sunset': toInstant(removal) };
}

/** The successor is named with the method of the operation that it replaces. */
function describeDeprecation({ deprecation, method }: Operation): string | undefined {
  if (deprecation === undefined) return undefined;
  const { removal, successor } = deprecation;
  return (
    `Deprecated: it will be removed on ${toInstant(removal)} and respond with 410 ` +
    `\`operation_removed\` from that instant. Use \`${method} ${successor}\` instead.`
  );
}

/** RFC 3339, in whole seconds. */
function toInstant(date: Date): string {
  return date.toISOString().replace('.000', '');
}

/** Tools show the description of a parameter, but not of its schema. */
function liftDescription({ schema: { description, ...schema }, ...parameter }: DocumentParameter): object {
  return { ...parameter, description, schema };
}

/** A body has the example of its schema. */
function toMedia(schema: Schema, schemas: Schemas): object {
  const name = String(schema.$ref).split('/').at(-1) ?? '';
  return { 'application/json': { schema, example: schemas[name]?.examples?.[0] } };
}
