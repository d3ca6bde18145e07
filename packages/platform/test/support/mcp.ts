import { oldToolCall, REVISION, toolCall } from '@animal-store/platform/testing';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { onTestFinished } from 'vitest';
import type { TestService } from './test-service.js';

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

/** How both kinds of clients call a tool. */
export const toolCalls = { '2026-07-28': toolCall, '2025-11-25': oldToolCall } as const;
