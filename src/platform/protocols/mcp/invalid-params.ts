import { ProtocolErrorCode, specTypeSchemas } from '@modelcontextprotocol/server';
import { toMessage } from './message.js';
import type { Refusal } from './refusals.js';

type Schema = (typeof specTypeSchemas)['InitializeRequest' | 'CallToolRequest' | 'ListToolsRequest'];

/** The methods with params of their own. */
const SCHEMAS = new Map<unknown, Schema>([
  ['initialize', specTypeSchemas.InitializeRequest],
  ['tools/call', specTypeSchemas.CallToolRequest],
  ['tools/list', specTypeSchemas.ListToolsRequest],
]);

/** What the SDK says of the members of `_meta` that a message of 2026-07-28 must have: which is wrong, or which are not there. */
export interface Envelope {
  readonly key?: string;
  readonly missing?: readonly string[];
}

/**
 * Why the SDK has refused the params of a message, in words: its own text is what its validator prints, and its code for
 * some methods that the service has failed. Undefined if the params are not why.
 */
export async function findInvalidParams(
  body: unknown,
  envelope: Envelope = {},
): Promise<Omit<Refusal, 'status'> | undefined> {
  const { key, missing = key === undefined ? [] : [key] } = envelope;
  const schema = missing.length > 0 ? undefined : SCHEMAS.get(toMessage(body).method);
  const { issues = [] } = (await schema?.['~standard'].validate(body)) ?? {};
  const names = [
    ...missing.map((name) => (name === '_meta' ? 'params._meta' : `params._meta.${name}`)),
    ...issues.map(({ path = [] }) => path.map(String).join('.')),
  ];
  if (names.length === 0) return undefined;
  const message = `Missing, or of another type than the protocol says: ${names.join(', ')}.`;
  return { code: ProtocolErrorCode.InvalidParams, message };
}
