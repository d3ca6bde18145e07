import { STATUS_CODES } from 'node:http';
import type { oas31 } from 'zod-openapi';
import { ApiError, type ErrorCode } from '../errors/api-error.js';
import { type ErrorDefinition, errorTable, type OperationFeatures } from '../errors/error-table.js';
import { integerSchema } from '../operations/input.js';
import {
  ERROR_HEADERS,
  type HeaderName,
  headerRefs,
  LIMIT_HEADERS,
  optionalHeaders,
} from './response-headers.js';

const STATUS_HEADERS: Readonly<Record<number, HeaderName>> = {
  401: 'WWW-Authenticate',
  403: 'WWW-Authenticate',
  405: 'Allow',
  429: 'Retry-After',
  503: 'Retry-After',
};

const definitions: Readonly<Record<ErrorCode, ErrorDefinition>> = errorTable;
const codes = Object.keys(errorTable) as ErrorCode[];
const restCodes = codes.filter((code) => (definitions[code].protocol ?? 'rest') === 'rest');
const statuses = [...new Set(restCodes.map((code) => definitions[code].status))];

/**
 * The body of every error: exactly its three members. A client must tolerate further members and codes. The two
 * alternatives of a code are the form by which generators keep the names of an enum whose values may grow.
 */
export const errorSchema = {
  type: 'object',
  description: 'The body of every response with a status of 400 or more',
  properties: {
    code: {
      description: 'Machine-readable error code: one of these, or one that a later version adds',
      anyOf: [{ type: 'string', enum: codes as string[] }, { type: 'string' }],
    },
    message: { type: 'string', description: 'Human-readable description' },
    status: { ...integerSchema(400, 599), description: 'The HTTP status code' },
  },
  required: ['code', 'message', 'status'],
};

/** Codes that only apply to operations that name them: see `errors` in OperationMeta */
const isDeclared = (code: ErrorCode) => definitions[code].appliesTo === 'declaring';
const sharedCodes = restCodes.filter((code) => !isDeclared(code));

/** The response of each error status that several operations share, by its name among the document's components. */
export const errorResponses: Readonly<Record<string, oas31.ResponseObject>> = Object.fromEntries(
  statuses.map((status) => [responseName(status), describeStatus(status, sharedCodes)]),
);

/** The response of an operation that names codes of its own for a status; undefined if the shared response applies. */
export function describeOwnErrors(
  status: number,
  features: OperationFeatures,
  declared: readonly ErrorCode[] = [],
): oas31.ResponseObject | undefined {
  const isOwn = (code: ErrorCode) => isDeclared(code) && definitions[code].status === status;
  return declared.some(isOwn) ? describeStatus(status, listCodes(features, declared)) : undefined;
}

/**
 * The statuses of the errors that an operation can respond with, in ascending order.
 *
 * @param declared codes of the operation besides those of its features
 */
export function listErrorStatuses(
  features: OperationFeatures,
  declared: readonly ErrorCode[] = [],
): number[] {
  const listed = listCodes(features, declared).map((code) => definitions[code].status);
  return [...new Set(listed)].sort((a, b) => a - b);
}

function listCodes(features: OperationFeatures, declared: readonly ErrorCode[]): ErrorCode[] {
  return restCodes.filter((code) => {
    const { appliesTo } = definitions[code];
    if (appliesTo === undefined || declared.includes(code)) return true;
    return appliesTo !== 'declaring' && features[appliesTo];
  });
}

/** The name of a status among the components, for example TooManyRequests. */
export function responseName(status: number): string {
  return String(STATUS_CODES[status]).replaceAll(' ', '');
}

function describeStatus(status: number, among: readonly ErrorCode[]): oas31.ResponseObject {
  const statusCodes = among.filter((code) => definitions[code].status === status);
  const header = STATUS_HEADERS[status];
  return {
    description: statusCodes.map((code) => `\`${code}\`: ${definitions[code].description}.`).join('\n\n'),
    headers: {
      ...headerRefs(header === undefined ? ERROR_HEADERS : [...ERROR_HEADERS, header]),
      // Node.js' HTTP parser rejects a malformed request, and an unknown method, before it can be counted.
      ...(status === 400 || status === 501 ? optionalHeaders(LIMIT_HEADERS) : {}),
    },
    content: {
      'application/json': {
        schema: { $ref: '#/components/schemas/Error' },
        examples: Object.fromEntries(statusCodes.flatMap(listExamples)),
      },
    },
  };
}

/** The examples of a code by name: the first has the name of the code, further ones are numbered. */
function listExamples(code: ErrorCode): [string, { value: object }][] {
  const { message, examples = [message] } = definitions[code];
  return examples.map((each, index) => [
    index === 0 ? code : `${code}_${index + 1}`,
    { value: new ApiError(code, { message: each }).body },
  ]);
}
