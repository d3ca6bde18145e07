import { ProtocolErrorCode } from '@modelcontextprotocol/server';
import { type Envelope, findInvalidParams } from './invalid-params.js';
import { HEADER_MISMATCH, type Refusal } from './refusals.js';

/** JSON-RPC's error as the SDK writes it. */
export interface SdkError {
  readonly code: number;
  readonly message: string;
  readonly data?: { readonly envelope?: Envelope };
}

/** What the service's own handlers refuse params with. */
export const OWN_MESSAGES = {
  unknownTool: 'There is no tool of this name: tools/list has those that there are.',
  cursor: 'The list of tools has one page, without a cursor.',
} as const;
const own: ReadonlySet<string> = new Set(Object.values(OWN_MESSAGES));

/** The code of the SDK's transport for older revisions. */
const BAD_REQUEST = -32_000;

const MESSAGES: ReadonlyMap<number, string> = new Map([
  [ProtocolErrorCode.InvalidRequest, 'The body is not a JSON-RPC message.'],
  [ProtocolErrorCode.MethodNotFound, 'There is no such method.'],
  [ProtocolErrorCode.InvalidParams, 'The params are not what the protocol says.'],
  [ProtocolErrorCode.UnsupportedProtocolVersion, 'This revision of the protocol is not supported.'],
  [
    HEADER_MISMATCH,
    'MCP-Protocol-Version, Mcp-Method and, for a call, Mcp-Name must be sent, and say what the body says.',
  ],
  [BAD_REQUEST, 'The message is of another revision than MCP-Protocol-Version says.'],
]);

/** The codes with which the SDK refuses params: not every method has the one that is meant for it. */
const PARAMS_CODES: ReadonlySet<number> = new Set([
  ProtocolErrorCode.InvalidParams,
  ProtocolErrorCode.InternalError,
]);

/**
 * What the SDK refuses a message with, in words of the service: those of the SDK quote its validator, an exception, or
 * whatever the client has sent. Undefined if the SDK has failed.
 */
export async function toRefusal(
  status: number,
  { code, message, data }: SdkError,
  body: unknown,
): Promise<Refusal | undefined> {
  if (status >= 500) return undefined;
  if (own.has(message)) return { status, code, message };
  const invalid = PARAMS_CODES.has(code) ? await findInvalidParams(body, data?.envelope) : undefined;
  if (invalid !== undefined) return { ...invalid, status };
  const known = MESSAGES.get(code);
  if (known === undefined) return undefined;
  // By the specification it says which revisions there are. Other data repeats the SDK's words.
  const isRevision = code === ProtocolErrorCode.UnsupportedProtocolVersion;
  return { status, code, message: known, ...(isRevision && data && { data }) };
}
