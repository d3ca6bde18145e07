import { spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createTRPCClient, httpBatchLink } from '@trpc/client';
import { afterAll, expect, test } from 'vitest';
import type { AppRouter } from '../src/router.js';

// The service as it is started. Run as root, its PostgreSQL is another account, which has to be able to enter.
const folder = mkdtempSync('/tmp/boatyard-');
chmodSync(folder, 0o711);
const env = { ...process.env, DATA_DIR: join(folder, 'data'), PORT: '0' };
const service = spawn(process.execPath, ['dist/main.js'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
const ended = new Promise((resolve) => service.once('exit', resolve));
afterAll(async () => {
  service.kill();
  await ended;
  rmSync(folder, { recursive: true });
});
const [, key, url] = await new Promise<string[]>((resolve, reject) => {
  let output = '';
  service.stdout.on('data', (chunk) => {
    output += chunk;
    const found = /Bearer (\S+)' '(http:\/\/[\d.:]+)/.exec(output);
    if (found) resolve(found);
  });
  void ended.then(() => reject(new Error(output)));
});

const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
async function post(path: string, body: object) {
  const response = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) });
  return response.json();
}
async function callTool(name: string, args: object) {
  const params = { name, arguments: args };
  return (await post('/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params })).result;
}
const trpc = createTRPCClient<AppRouter>({ links: [httpBatchLink({ url: `${url}/trpc`, headers })] });

test('a boat is sold once, over whatever protocol', async () => {
  const boat = await post('/v1/boats', { name: 'Grebe', metres: 8 });
  expect(await trpc.listBoats.query({ status: 'for_sale' })).toContainEqual(boat);
  const { structuredContent } = await callTool('buyBoat', { boatId: boat.id });
  expect(structuredContent).toEqual({ ...boat, status: 'sold' });

  const refusal = { code: 'boat_sold', message: 'Grebe is sold.', status: 409 };
  expect(await post(`/v1/boats/${boat.id}/buy`, {})).toEqual(refusal);
  await expect(trpc.buyBoat.mutate({ boatId: boat.id })).rejects.toMatchObject({ data: { error: refusal } });
  expect(await callTool('buyBoat', { boatId: boat.id })).toMatchObject({ isError: true });
});
