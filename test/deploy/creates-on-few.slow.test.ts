import { readFileSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { freePort } from '@animal-store/limits/testing';
import { createTemporaryFolder, runCommand } from '@animal-store/platform/testing';
import { afterAll, describe, expect, test } from 'vitest';
import { hasHaproxy } from '../../packages/platform/test/support/haproxy.js';

/** What the documents add to docs/deploy/haproxy.cfg: a rule of its frontend, and a backend */
const [, rule = '', backend = ''] =
  /^```haproxy\n(.*?\n)\n(backend creates\n.*?)^```$/ms.exec(readFileSync('docs/capacity.md', 'utf8')) ?? [];

const closing: (() => unknown)[] = [];
afterAll(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** A replica that is always ready, and answers with its name. */
async function startReplica(name: string): Promise<Server> {
  const server = createServer((_request, response) => response.end(name));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return server;
}

const portOf = (server: Server) => (server.address() as AddressInfo).port;

describe.runIf(hasHaproxy())('the lines that send creates to few processes', () => {
  test('send every POST to the processes that they name, and the rest to all; without those processes, POST too', async () => {
    const names = ['store-1', 'store-2', 'store-3'];
    const replicas = await Promise.all(names.map(startReplica));
    const port = await freePort();
    let config = readFileSync('docs/deploy/haproxy.cfg', 'utf8')
      .replace('bind :8080', `bind 127.0.0.1:${port}`)
      .replaceAll('    default-server check port 3001', '    default-server check inter 50ms')
      .replaceAll(
        '    server store-2 store-2:3000',
        '    server store-2 store-2:3000\n    server store-3 store-3:3000',
      )
      .replace('    default_backend replicas\n', `${rule}    default_backend replicas\n`)
      .concat('\n', backend);
    for (const [index, name] of names.entries())
      config = config.replaceAll(`${name}:3000`, `127.0.0.1:${portOf(replicas[index] as Server)}`);
    const folder = await createTemporaryFolder();
    closing.push(() => rm(folder, { recursive: true, force: true }));
    const file = join(folder, 'haproxy.cfg');
    await writeFile(file, config);
    const proxy = runCommand('haproxy', ['-W', '-db', '-f', file], {});
    closing.push(() => {
      proxy.child.kill('SIGTERM');
      return proxy.ended;
    });
    await proxy.until(/Loading success/);
    const ask = async (method: string) =>
      (await fetch(`http://127.0.0.1:${port}/v1/pets`, { method })).text();
    const askOften = async (method: string) =>
      [...new Set(await Promise.all(Array.from({ length: 60 }, () => ask(method))))].sort();
    await expect.poll(() => askOften('GET')).toEqual(names);
    await expect.poll(() => askOften('POST')).toEqual(['store-1', 'store-2']);
    for (const replica of replicas.slice(0, 2)) {
      replica.close();
      replica.closeAllConnections();
    }
    await expect.poll(() => askOften('POST').catch(() => [])).toEqual(['store-3']);
  });
});
