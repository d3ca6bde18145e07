import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { type Environment, runNode } from '@animal-store/platform/testing';
import { afterEach, expect, test } from 'vitest';

const servers: { close(): unknown; closeAllConnections?: () => void }[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections?.();
    server.close();
  }
});

async function listen(server: Server | ReturnType<typeof createTcpServer>): Promise<string> {
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return String((server.address() as AddressInfo).port);
}

/** A service that is ready or not. */
function startService(status: number): Promise<string> {
  return listen(createServer((_, response) => response.writeHead(status).end(`{"status":${status}}`)));
}

const [, script = ''] =
  /^HEALTHCHECK .*CMD \["node", "(.+)"\]$/m.exec(readFileSync('Dockerfile', 'utf8')) ?? [];

async function check(environment: Environment) {
  const program = runNode([script], environment);
  return [await program.ended, program.output()];
}

test.each([
  [200, 0],
  [503, 1],
])(
  'the container is asked directly for its health, whatever proxy the environment names: %i',
  async (status, code) => {
    const PORT = await startService(status);
    // It accepts connections, and never answers.
    const sockets: { destroy(): void }[] = [];
    const proxy = `http://127.0.0.1:${await listen(createTcpServer((socket) => sockets.push(socket)))}`;
    const environment = { NODE_USE_ENV_PROXY: '1', HTTP_PROXY: proxy, http_proxy: proxy, ALL_PROXY: proxy };
    expect(await check({ PORT, ...environment })).toEqual([code, `{"status":${status}}\n`]);
    expect(sockets).toEqual([]);
  },
);

test('a container that does not answer, or breaks off, is not healthy, and the check says why', async () => {
  expect(await check({ PORT: '1' })).toEqual([
    1,
    expect.stringMatching(/^http:\/\/127\.0\.0\.1:1\/health\/ready: .*ECONNREFUSED.*\n$/),
  ]);
  const METRICS_PORT = await listen(
    createServer((_, response) => {
      response.writeHead(200, { 'content-length': 10 }).write('{');
      response.socket?.end();
    }),
  );
  expect(await check({ PORT: '1', METRICS_PORT })).toEqual([1, expect.stringContaining(METRICS_PORT)]);
});
