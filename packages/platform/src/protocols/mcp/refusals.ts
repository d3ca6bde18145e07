import {
  ProtocolErrorCode,
  SUPPORTED_PROTOCOL_VERSIONS,
  specTypeSchemas,
} from '@modelcontextprotocol/server';
import type { FastifyRequest } from 'fastify';
import { ApiError } from '../../errors/api-error.js';
import { CALL_METHOD, type Message, REVISION, REVISION_META, readHead, toMessage } from './message.js';

/** The revisions before 2026-07-28 that have this transport. Their clients send neither its new headers nor its `_meta`. */
export const SESSION_REVISIONS = SUPPORTED_PROTOCOL_VERSIONS.filter((revision) => revision >= '2025-03-26');
const REVISIONS = [REVISION, ...SESSION_REVISIONS];

/** The error code of the specification that the SDK has no name for. */
const HEADER_MISMATCH = -32_020;

/** Why a message is not passed to the SDK: a JSON-RPC error with its HTTP status by the specification */
interface McpRefusal {
  readonly status: number;
  readonly code: number;
  readonly message: string;
  readonly data?: object;
}

/**
 * Refuses what the SDK would not:
 *
 * - A batch. The SDK refuses one of 2026-07-28, but would run up to 100 calls of an older one, which would count as one
 *   request.
 * - `subscriptions/listen`, which the SDK answers with a stream even if there is nothing to subscribe to.
 * - Headers that disagree with the body of an older revision, which does not define them: admission has relied on them.
 * - An unknown revision, named only in a header.
 *
 * @param body undefined if there is none, an ApiError if it cannot be read
 */
export function findRefusal(request: FastifyRequest, body: unknown): McpRefusal | undefined {
  if (body === undefined || body instanceof ApiError) {
    const { message } = body ?? { message: 'There is no body.' };
    return { status: 400, code: ProtocolErrorCode.ParseError, message };
  }
  if (Array.isArray(body)) {
    const message = 'Batches are not supported: send each message as a request of its own.';
    return { status: 400, code: ProtocolErrorCode.InvalidRequest, message };
  }
  const message = toMessage(body);
  return findMismatch(request, message) ?? findUnknownRevision(request, message) ?? findSubscription(message);
}

function findMismatch(request: FastifyRequest, { method, params }: Message): McpRefusal | undefined {
  const head = readHead(request);
  if (head.method === undefined || typeof method !== 'string') return undefined;
  const isSameName = method !== CALL_METHOD || head.name === undefined || head.name === params.name;
  if (head.method === method && isSameName) return undefined;
  const header = head.method === method ? 'Mcp-Name' : 'Mcp-Method';
  return { status: 400, code: HEADER_MISMATCH, message: `The header ${header} and the body disagree.` };
}

function findUnknownRevision({ headers }: FastifyRequest, { params }: Message): McpRefusal | undefined {
  const requested = headers['mcp-protocol-version'];
  if (requested === undefined || REVISIONS.includes(String(requested))) return undefined;
  // The SDK compares the two.
  if (params._meta[REVISION_META] !== undefined) return undefined;
  return {
    status: 400,
    code: ProtocolErrorCode.UnsupportedProtocolVersion,
    message: `MCP-Protocol-Version must be one of ${REVISIONS.join(', ')}.`,
    data: { supported: REVISIONS, requested },
  };
}

function findSubscription({ method }: Message): McpRefusal | undefined {
  if (method !== 'subscriptions/listen') return undefined;
  return {
    status: 404,
    code: ProtocolErrorCode.MethodNotFound,
    message: 'There is nothing to subscribe to.',
  };
}

/** What the SDK says of the required members of `_meta`: which one is wrong, or which are missing */
interface Envelope {
  readonly key?: string;
  readonly missing?: readonly string[];
}

/** JSON-RPC's error as the SDK writes it. */
export interface SdkError {
  readonly code: number;
  readonly message: string;
  readonly data?: { readonly envelope?: Envelope };
}

/** The messages with which the service's own handlers refuse params */
export const OWN_MESSAGES = {
  unknownTool: 'There is no tool of this name: tools/list names all tools.',
  cursor: 'The list of tools has one page, without a cursor.',
} as const;
const own: ReadonlySet<string> = new Set(Object.values(OWN_MESSAGES));

/** The code of the SDK's transport for older revisions. */
const BAD_REQUEST = -32_000;

const MESSAGES: ReadonlyMap<number, string> = new Map([
  [ProtocolErrorCode.InvalidRequest, 'The body is not a JSON-RPC message.'],
  [ProtocolErrorCode.MethodNotFound, 'There is no such method.'],
  [ProtocolErrorCode.InvalidParams, 'The params are not what the protocol defines.'],
  [ProtocolErrorCode.UnsupportedProtocolVersion, 'This revision of the protocol is not supported.'],
  [
    HEADER_MISMATCH,
    'MCP-Protocol-Version, Mcp-Method and, for a call, Mcp-Name must be sent, and agree with the body.',
  ],
  [BAD_REQUEST, 'The revision of the message is not that of MCP-Protocol-Version.'],
]);

/** The codes with which the SDK refuses params, because not every method uses the code meant for that */
const PARAMS_CODES: ReadonlySet<number> = new Set([
  ProtocolErrorCode.InvalidParams,
  ProtocolErrorCode.InternalError,
]);

type Schema = (typeof specTypeSchemas)['InitializeRequest' | 'CallToolRequest' | 'ListToolsRequest'];

/** The methods with params of their own. */
const SCHEMAS = new Map<unknown, Schema>([
  ['initialize', specTypeSchemas.InitializeRequest],
  ['tools/call', specTypeSchemas.CallToolRequest],
  ['tools/list', specTypeSchemas.ListToolsRequest],
]);

/**
 * Why the SDK refused a message, in the service's words. The SDK's own quote its validator, an exception, or whatever the
 * client has sent. Undefined if the SDK has failed.
 */
export async function toRefusal(
  status: number,
  { code, message, data }: SdkError,
  body: unknown,
): Promise<McpRefusal | undefined> {
  if (status >= 500) return undefined;
  if (own.has(message)) return { status, code, message };
  const invalid = PARAMS_CODES.has(code) ? await findInvalidParams(body, data?.envelope) : undefined;
  if (invalid !== undefined) return { ...invalid, status };
  const known = MESSAGES.get(code);
  if (known === undefined) return undefined;
  // By the specification, the data of this error names the supported revisions. Other data repeats the SDK's words.
  const isRevision = code === ProtocolErrorCode.UnsupportedProtocolVersion;
  return { status, code, message: known, ...(isRevision && data && { data }) };
}

/**
 * Why the SDK refused the params of a message, in words. Its own text is what its validator prints, and for some methods
 * its code says that the service failed. Undefined if the params are not the reason.
 */
async function findInvalidParams(
  body: unknown,
  envelope: Envelope = {},
): Promise<Omit<McpRefusal, 'status'> | undefined> {
  const { key, missing = key === undefined ? [] : [key] } = envelope;
  const schema = missing.length > 0 ? undefined : SCHEMAS.get(toMessage(body).method);
  const { issues = [] } = (await schema?.['~standard'].validate(body)) ?? {};
  const names = [
    ...missing.map((name) => (name === '_meta' ? 'params._meta' : `params._meta.${name}`)),
    ...issues.map(({ path = [] }) => path.map(String).join('.')),
  ];
  if (names.length === 0) return undefined;
  const message = `Missing, or not of the type that the protocol defines: ${names.join(', ')}.`;
  return { code: ProtocolErrorCode.InvalidParams, message };
}

/** JSON-RPC's error response. It has the request's id, if there is one (https://www.jsonrpc.org/specification). */
export function toErrorText({ code, message, data }: McpRefusal, body: unknown): string {
  const { id } = toMessage(body);
  const isId = typeof id === 'string' || Number.isInteger(id);
  return JSON.stringify({ jsonrpc: '2.0', error: { code, message, data }, id: isId ? id : null });
}
