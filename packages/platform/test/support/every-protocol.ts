import { callRpc } from './document-requests.js';
import { toolCall } from './mcp.js';
import type { ListedOperation } from './openapi-checker.js';
import { type Caller, post, type TestResponse } from './test-service.js';

export type Input = Readonly<Record<string, unknown>>;

/** What an operation answered with, in one form for all protocols. */
interface Answer {
  /** Of the response over REST and tRPC, and of the error of a tool */
  readonly status: number;
  /** Undefined where it succeeded */
  readonly code: string | undefined;
  /** The output, or the body of the error with its three members */
  // biome-ignore lint/suspicious/noExplicitAny: tests read outputs of every shape
  readonly result: any;
  /** What is wrong with which member. REST says it in the message alone. */
  readonly fields: Readonly<Record<string, string>> | undefined;
  readonly headers: Headers;
}

interface ErrorBody {
  readonly code: string;
  readonly message: string;
  readonly status: number;
}

type Send = (
  call: Caller,
  operation: ListedOperation,
  input: Input,
  headers?: Record<string, string>,
) => Promise<Answer>;

/** The ways to call an operation with an input. */
export const PROTOCOLS: Readonly<Record<'REST' | 'tRPC' | 'MCP', Send>> = {
  async REST(call, { method, path, parameters = [], requestBody }, input, headers = {}) {
    const inPath = parameters.filter((parameter) => parameter.in === 'path').map(({ name }) => name);
    const address = path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(String(input[name])));
    const rest = Object.entries(input).filter(([name]) => !inPath.includes(name));
    const query = requestBody === undefined ? `?${new URLSearchParams(rest as [string, string][])}` : '';
    const init = requestBody === undefined ? { headers } : post(Object.fromEntries(rest), headers);
    const response = await call(`/v1${address}${query}`, { ...init, method });
    return toAnswer(response, response.status < 400 ? { output: response.body } : { error: response.body });
  },
  async tRPC(call, operation, input, headers = {}) {
    const init = operation.method === 'GET' ? { headers } : post(input, headers);
    const response = await callRpc(call, operation, input, init);
    const { result, error } = response.body;
    return toAnswer(
      response,
      error ? { error: error.data.error, fields: error.data.fields } : { output: result.data },
    );
  },
  async MCP(call, { operationId }, input, headers = {}) {
    const response = await call('/mcp', toolCall(operationId, input, headers));
    const { result } = response.body;
    // Admission refuses a call as a whole.
    if (result === undefined) return toAnswer(response, { error: response.body });
    const { structuredContent, isError } = result;
    const { fields, code, message, status } = structuredContent;
    return isError
      ? toAnswer({ ...response, status }, { error: { code, message, status }, fields })
      : toAnswer(response, { output: structuredContent.items ?? structuredContent });
  },
};
export type Protocol = keyof typeof PROTOCOLS;
export const PROTOCOL_NAMES = Object.keys(PROTOCOLS) as Protocol[];

function toAnswer(
  { status, headers }: TestResponse,
  outcome: { readonly output: unknown } | { readonly error: ErrorBody; readonly fields?: Answer['fields'] },
): Answer {
  return 'error' in outcome
    ? { status, headers, code: outcome.error.code, result: outcome.error, fields: outcome.fields }
    : { status, headers, code: undefined, result: outcome.output, fields: undefined };
}
