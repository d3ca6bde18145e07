import { STATUS_CODES } from 'node:http';
import type { oas31 } from 'zod-openapi';
import { ApiError } from '../errors/api-error.js';
import type { ErrorDefinition, ErrorTable, OperationFeatures } from '../errors/error-table.js';
import { integerSchema } from '../operations/input.js';
import {
  ERROR_HEADERS,
  type HeaderName,
  type Headers,
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

export type ErrorResponses = ReturnType<typeof createErrorResponses>;

/** What the document says of the errors of a service. */
export function createErrorResponses(table: ErrorTable, headers: Headers) {
  const ofRest = [...table].filter(([, { protocol = 'rest' }]) => protocol === 'rest');
  const shared = ofRest.filter(([, { appliesTo }]) => appliesTo !== 'declaring');
  const statuses = new Set(ofRest.map(([, { status }]) => status));
  const list = (features: OperationFeatures, declared: readonly string[]) =>
    ofRest.filter(([code, { appliesTo }]) => {
      if (appliesTo === undefined || declared.includes(code)) return true;
      return appliesTo !== 'declaring' && features[appliesTo];
    });
  return {
    /**
     * The body of every error: exactly its three members. A client must tolerate further members and codes. The two
     * alternatives of a code are the form by which generators keep the names of an enum whose values may grow.
     */
    errorSchema: {
      type: 'object',
      description: 'The body of every response with a status of 400 or more',
      properties: {
        code: {
          description: 'Machine-readable error code: one of these, or one that a later version adds',
          anyOf: [{ type: 'string', enum: [...table.keys()] }, { type: 'string' }],
        },
        message: { type: 'string', description: 'Human-readable description' },
        status: { ...integerSchema(400, 599), description: 'The HTTP status code' },
      },
      required: ['code', 'message', 'status'],
    },
    /** The response of each error status that several operations share, by its name among the document's components. */
    errorResponses: Object.fromEntries(
      [...statuses].map((status) => [responseName(status), describeStatus(headers, status, shared)]),
    ) as Readonly<Record<string, oas31.ResponseObject>>,
    /** The response of an operation that names codes of its own for a status; undefined if the shared response applies. */
    describeOwnErrors(status: number, features: OperationFeatures, declared: readonly string[] = []) {
      const isOwn = (code: string) => {
        const definition = table.get(code);
        return definition?.appliesTo === 'declaring' && definition.status === status;
      };
      return declared.some(isOwn) ? describeStatus(headers, status, list(features, declared)) : undefined;
    },
    /**
     * The statuses of the errors that an operation can respond with, in ascending order.
     *
     * @param declared codes of the operation besides those of its features
     */
    listErrorStatuses(features: OperationFeatures, declared: readonly string[] = []): number[] {
      const listed = list(features, declared).map(([, { status }]) => status);
      return [...new Set(listed)].sort((a, b) => a - b);
    },
  };
}

/** The name of a status among the components, for example TooManyRequests. */
export function responseName(status: number): string {
  return String(STATUS_CODES[status]).replaceAll(' ', '');
}

type Coded = readonly [code: string, definition: ErrorDefinition];

function describeStatus(headers: Headers, status: number, among: readonly Coded[]): oas31.ResponseObject {
  const coded = among.filter(([, definition]) => definition.status === status);
  const header = STATUS_HEADERS[status];
  return {
    description: coded.map(([code, { description }]) => `\`${code}\`: ${description}.`).join('\n\n'),
    headers: {
      ...headerRefs(header === undefined ? ERROR_HEADERS : [...ERROR_HEADERS, header]),
      // Node.js' HTTP parser rejects a malformed request, and an unknown method, before it can be counted.
      ...(status === 400 || status === 501 ? optionalHeaders(headers, LIMIT_HEADERS) : {}),
    },
    content: {
      'application/json': {
        schema: { $ref: '#/components/schemas/Error' },
        examples: Object.fromEntries(coded.flatMap(listExamples)),
      },
    },
  };
}

/** The examples of a code by name: the first has the name of the code, further ones are numbered. */
function listExamples([code, definition]: Coded): [string, { value: object }][] {
  const { message, examples = [message] } = definition;
  return examples.map((each, index) => [
    index === 0 ? code : `${code}_${index + 1}`,
    { value: new ApiError({ code, definition }, { message: each }).body },
  ]);
}
