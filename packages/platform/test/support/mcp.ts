import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { onTestFinished } from 'vitest';
import { post, type TestService } from './test-service.js';

export const REVISION = '2026-07-28';

/** The SDK's client in the mode of each kind of revision: without sessions, or with a handshake. */
const MODES = { '2026-07-28': { pin: REVISION }, '2025-11-25': 'legacy' } as const;
export type Mode = keyof typeof MODES;
export const MODE_NAMES = Object.keys(MODES) as Mode[];

/** Connects the SDK's own client, which is closed when the test ends. */
export async function connectClient(
  { url, key }: Pick<TestService, 'url' | 'key'>,
  mode: Mode,
  headers: Readonly<Record<string, string>> = {},
): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: MODES[mode] } });
  const requestInit = { headers: { authorization: `Bearer ${key}`, ...headers } };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit }));
  onTestFinished(() => client.close());
  return client;
}

const META = {
  'io.modelcontextprotocol/protocolVersion': REVISION,
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};

/** A message of 2026-07-28, and the headers that have to agree with it. */
export function message(
  method: string,
  params: Readonly<Record<string, unknown>> = {},
  headers: Record<string, string> = {},
): RequestInit {
  const { name, _meta, ...rest } = params;
  const body = {
    jsonrpc: '2.0',
    id: 1,
    method,
    params: { name, ...rest, _meta: { ...META, ...Object(_meta) } },
  };
  return post(body, {
    'mcp-protocol-version': REVISION,
    'mcp-method': method,
    ...(typeof name === 'string' && { 'mcp-name': name }),
    ...headers,
  });
}

/** A call of a tool, as clients of 2026-07-28 send it. */
export function toolCall(
  name: string,
  args: unknown = {},
  headers: Record<string, string> = {},
): RequestInit {
  return message('tools/call', { name, arguments: args }, headers);
}

/** The same as clients of the revisions before send it: only the body says what it asks for. */
export function oldToolCall(
  name: string,
  args: unknown = {},
  headers: Record<string, string> = {},
): RequestInit {
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } };
  return post(body, { 'mcp-protocol-version': '2025-11-25', ...headers });
}

/** How both kinds of clients call a tool. */
export const toolCalls = { '2026-07-28': toolCall, '2025-11-25': oldToolCall } as const;
