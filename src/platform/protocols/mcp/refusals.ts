import { ProtocolErrorCode, SUPPORTED_PROTOCOL_VERSIONS } from '@modelcontextprotocol/server';
import type { FastifyRequest } from 'fastify';
import { ApiError } from '../../errors/api-error.js';
import { CALL_METHOD, type Message, REVISION_META, readHead, toMessage } from './message.js';

/** The revisions before 2026-07-28 that this transport exists in: their clients send neither its headers nor its `_meta`. */
export const SESSION_REVISIONS = SUPPORTED_PROTOCOL_VERSIONS.filter((revision) => revision >= '2025-03-26');
const REVISIONS = ['2026-07-28', ...SESSION_REVISIONS];

/** The error code of the specification that the SDK has no name for. */
export const HEADER_MISMATCH = -32_020;

/** Why a message is not handed to the SDK: a JSON-RPC error with the HTTP status that the specification names for it. */
export interface Refusal {
  readonly status: number;
  readonly code: number;
  readonly message: string;
  readonly data?: object;
}

/**
 * Refuses what the SDK would not:
 *
 * - A batch. It does without in 2026-07-28, but would run up to 100 calls of an older one, which counts as one request.
 * - `subscriptions/listen`, which it answers with a stream even if there is nothing to subscribe to.
 * - Headers that disagree with the body of an older revision, which does not define them: admission has relied on them.
 * - An unknown revision, named only in a header.
 *
 * @param body undefined if there is none, an ApiError if it cannot be read
 */
export function findRefusal(request: FastifyRequest, body: unknown): Refusal | undefined {
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

function findMismatch(request: FastifyRequest, { method, params }: Message): Refusal | undefined {
  const head = readHead(request);
  if (head.method === undefined || typeof method !== 'string') return undefined;
  const isSameName = method !== CALL_METHOD || head.name === undefined || head.name === params.name;
  if (head.method === method && isSameName) return undefined;
  const header = head.method === method ? 'Mcp-Name' : 'Mcp-Method';
  return { status: 400, code: HEADER_MISMATCH, message: `The header ${header} and the body disagree.` };
}

function findUnknownRevision({ headers }: FastifyRequest, { params }: Message): Refusal | undefined {
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

function findSubscription({ method }: Message): Refusal | undefined {
  if (method !== 'subscriptions/listen') return undefined;
  return {
    status: 404,
    code: ProtocolErrorCode.MethodNotFound,
    message: 'There is nothing to subscribe to.',
  };
}

/** JSON-RPC's error response. It has the id of the request as far as that has one (https://www.jsonrpc.org/specification). */
export function toErrorText({ code, message, data }: Refusal, body: unknown): string {
  const { id } = toMessage(body);
  const isId = typeof id === 'string' || Number.isInteger(id);
  return JSON.stringify({ jsonrpc: '2.0', error: { code, message, data }, id: isId ? id : null });
}
