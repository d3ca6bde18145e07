import type { FastifyRequest } from 'fastify';

/** The method that calls a tool. */
export const CALL_METHOD = 'tools/call';

/** The current revision. */
export const REVISION = '2026-07-28';

/** The member of `_meta` with which a message says that its revision is 2026-07-28 or later. */
export const REVISION_META = 'io.modelcontextprotocol/protocolVersion';

/** What is read of a JSON-RPC message before the SDK checks it: any member may have any type. */
export interface Message {
  readonly id?: unknown;
  readonly method?: unknown;
  readonly params: { readonly name?: unknown; readonly _meta: Readonly<Record<string, unknown>> };
}

/** The form of a name that is not plain ASCII; its content is Base64 of UTF-8. */
const BASE64 = /^=\?base64\?(.*)\?=$/;

/** The members of a body; none if it is not an object. */
export function toMessage(body: unknown): Message {
  const { id, method, params } = toObject(body);
  const { name, _meta } = toObject(params);
  return { id, method, params: { name, _meta: toObject(_meta) } };
}

function toObject(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : {};
}

/** What the body asks for according to the headers that clients of 2026-07-28 send. */
export function readHead({ headers }: FastifyRequest): { method?: string; name?: string } {
  const { 'mcp-method': method, 'mcp-name': name } = headers;
  if (typeof method !== 'string') return {};
  if (typeof name !== 'string') return { method };
  const [, encoded] = BASE64.exec(name) ?? [];
  return { method, name: encoded === undefined ? name : Buffer.from(encoded, 'base64').toString() };
}
