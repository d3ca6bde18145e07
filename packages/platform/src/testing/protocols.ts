import { MCP_PREFIX, REST_PREFIX, TRPC_PREFIX } from '../contract/protocol.js';
import { listOperations } from '../operations/list-operations.js';
import { createRouter, type Resource } from '../operations/resource.js';
import { type Caller, post, rpcPath, type TestResponse } from './callers.js';
import { toolCall } from './mcp.js';

/** What an operation answered with, in one form for all protocols. */
export interface Answer {
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

/** Calls an operation by its name. */
export type Send = (
  operation: string,
  input?: Readonly<Record<string, unknown>>,
  headers?: Record<string, string>,
) => Promise<Answer>;

/** The names of the protocols, for a test that holds for each */
export const PROTOCOLS = ['REST', 'tRPC', 'MCP'] as const;
export type Protocol = (typeof PROTOCOLS)[number];
export type Protocols = Readonly<Record<Protocol, Send>>;

/** The ways to call the operations of a store, each with the key of the caller. */
export function createProtocols(resources: readonly Resource[]): (call: Caller) => Protocols {
  const operations = listOperations(createRouter(resources));
  const find = (name: string) => {
    const found = operations.find((operation) => operation.name === name);
    if (found === undefined) throw new Error(`The store has no operation ${name}`);
    return found;
  };
  return (call) => ({
    async REST(name, input = {}, headers = {}) {
      const { method, path, parameters, takesBody } = find(name);
      const inPath = parameters.filter((parameter) => parameter.in === 'path').map((each) => each.name);
      const address = path.replace(/\{(\w+)\}/g, (_, member) => encodeURIComponent(String(input[member])));
      const rest = Object.entries(input).filter(([member]) => !inPath.includes(member));
      const query = takesBody ? '' : `?${new URLSearchParams(rest as [string, string][])}`;
      const init = takesBody ? post(Object.fromEntries(rest), headers) : { headers };
      const response = await call(`${REST_PREFIX}${address}${query}`, { ...init, method });
      const { status, body } = response;
      return toAnswer(response, status < 400 ? { output: body } : { error: body });
    },
    async tRPC(name, input, headers = {}) {
      const isQuery = find(name).method === 'GET';
      const response = isQuery
        ? await call(rpcPath(name, input), { headers })
        : await call(`${TRPC_PREFIX}/${name}`, post(input ?? {}, headers));
      const { result, error } = response.body;
      return toAnswer(
        response,
        error ? { error: error.data.error, fields: error.data.fields } : { output: result.data },
      );
    },
    async MCP(name, input = {}, headers = {}) {
      const response = await call(MCP_PREFIX, toolCall(find(name).name, input, headers));
      const { result } = response.body;
      // Admission refuses a call as a whole.
      if (result === undefined) return toAnswer(response, { error: response.body });
      const { structuredContent, isError } = result;
      if (!isError) return toAnswer(response, { output: structuredContent?.items ?? structuredContent });
      const { fields, code, message, status } = structuredContent;
      return toAnswer({ ...response, status }, { error: { code, message, status }, fields });
    },
  });
}

function toAnswer(
  { status, headers }: TestResponse,
  outcome: { readonly output: unknown } | { readonly error: ErrorBody; readonly fields?: Answer['fields'] },
): Answer {
  return 'error' in outcome
    ? { status, headers, code: outcome.error.code, result: outcome.error, fields: outcome.fields }
    : { status, headers, code: undefined, result: outcome.output, fields: undefined };
}
