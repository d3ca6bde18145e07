import { post } from './callers.js';

/** The revision of the Model Context Protocol in which each request says what it asks for in its headers, too */
export const REVISION = '2026-07-28';

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
