import { ProtocolErrorCode, specTypeSchemas } from '@modelcontextprotocol/server';
import { toMessage } from './message.js';
import type { Refusal } from './refusals.js';

type Schema = (typeof specTypeSchemas)['InitializeRequest' | 'CallToolRequest' | 'ListToolsRequest'];

/** The methods with params of their own. What all params may have, the SDK checks before it looks at the method. */
const SCHEMAS = new Map<string, Schema>([
  ['initialize', specTypeSchemas.InitializeRequest],
  ['tools/call', specTypeSchemas.CallToolRequest],
  ['tools/list', specTypeSchemas.ListToolsRequest],
]);

/**
 * Why the SDK has refused the params of a message, in words: its own text is what its validator prints, and its code for
 * some methods that the service has failed. Undefined if the params are not why.
 */
export async function findInvalidParams(body: unknown): Promise<Refusal | undefined> {
  const schema = SCHEMAS.get(String(toMessage(body).method));
  const { issues = [] } = (await schema?.['~standard'].validate(body)) ?? {};
  if (issues.length === 0) return undefined;
  const names = issues.map(({ path = [] }) => path.map(String).join('.'));
  const message = `Missing, or of another type than the protocol says: ${names.join(', ')}.`;
  return { status: 200, code: ProtocolErrorCode.InvalidParams, message };
}
