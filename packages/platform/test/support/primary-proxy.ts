import { once } from 'node:events';
import { rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { freePort } from '@animal-store/limits/testing';
import { createTemporaryFolder, runCommand } from '@animal-store/platform/testing';
import type { PostgresServer } from './postgres-server.js';

/** One port that leads to whichever server is the primary. */
export interface PrimaryProxy {
  readonly port: number;
  close(): Promise<void>;
}

export async function startPrimaryProxy(servers: readonly PostgresServer[]): Promise<PrimaryProxy> {
  const folder = await createTemporaryFolder();
  const endpoints = await Promise.all(servers.map(startRoleEndpoint));
  const port = await freePort();
  const lines = endpoints.map(
    ({ server, checked }, n) => `  server postgres${n} 127.0.0.1:${server.port} check port ${checked}`,
  );
  const config = join(folder, 'haproxy.cfg');
  await writeFile(
    config,
    `
defaults
  mode tcp
  timeout connect 1s
  timeout client 1h
  timeout server 1h
listen primary
  bind 127.0.0.1:${port}
  option httpchk GET /primary
  default-server inter 1s fall 2 rise 1 on-marked-down shutdown-sessions
${lines.join('\n')}
`,
  );
  const program = runCommand('haproxy', ['-f', config], {});
  await program.until(/primary\/postgres1 is DOWN/);
  return {
    port,
    async close() {
      program.child.kill('SIGTERM');
      await program.ended;
      for (const { endpoint } of endpoints) endpoint.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Responds with 200 while the server is the primary, as the agents of high-availability tools do. */
async function startRoleEndpoint(server: PostgresServer) {
  const endpoint = createServer(async (_request, response) => {
    const isPrimary = await server
      .query<{ primary: boolean }>('SELECT NOT pg_is_in_recovery() AS primary')
      .then(([row]) => row?.primary)
      .catch(() => false);
    response.writeHead(isPrimary ? 200 : 503).end();
  });
  endpoint.listen(0, '127.0.0.1');
  await once(endpoint, 'listening');
  const { port: checked } = endpoint.address() as AddressInfo;
  return { server, endpoint, checked };
}
