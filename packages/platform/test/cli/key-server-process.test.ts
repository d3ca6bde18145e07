import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { freePort } from '@animal-store/limits/testing';
import {
  createCaller,
  createTemporaryFolder,
  type Environment,
  execute,
} from '@animal-store/platform/testing';
import pg from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { list, OTHER_TABLE, TABLE } from '#operations-under-test';
import { type KeyServer, startKeyServer, TOKEN } from '../support/key-server.js';
import { run, runInProcess, runKeys } from '../support/process.js';
import { startTcpProxy } from '../support/tcp-proxy.js';
import { createTestDatabase, startService } from '../support/test-service.js';

let databaseUrl: string;
/** For tests that neither configure nor end it */
let shared: KeyServer;
beforeAll(async () => {
  databaseUrl = await createTestDatabase();
  shared = await startKeyServer({ DATABASE_URL: databaseUrl, APP_ENV: 'staging' });
});
afterAll(() => shared.stop());

/** Ends with the test. */
async function start(environment: Environment = {}): Promise<KeyServer> {
  const server = await startKeyServer({ DATABASE_URL: databaseUrl, APP_ENV: 'staging', ...environment });
  onTestFinished(async () => void (await server.stop()));
  return server;
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const free = { name: 'default', plan: 'free' };

test('of twenty deliveries at once to two processes, one makes the key; the others get it without its secret', async () => {
  const servers = [shared, await start()];
  const deliver = (owner: string) =>
    Promise.all(
      Array.from({ length: 20 }, (_, n) => servers[n % 2]?.keys('create', { ...free, owner, once: true })),
    );
  for (let times = 0; times < 5; times += 1) {
    const owner = `twenty ${times}`;
    const answers = (await deliver(owner)).map((answer) => answer?.body);
    const [issued, ...more] = answers.filter(({ isNew }) => isNew);
    expect([issued.key, more]).toEqual([expect.stringMatching(/^by_test_/), []]);
    const others = answers.filter(({ isNew }) => isNew === false);
    expect(others).toHaveLength(19);
    for (const other of others) {
      expect(other).toMatchObject({ id: issued.id, owner, plan: 'free', hint: issued.hint });
      expect(other).not.toHaveProperty('key');
    }
    expect(await runKeys({ DATABASE_URL: databaseUrl }, 'list', '--owner', owner)).toHaveLength(1);
  }
});

test('once issues another key when the one of this name was revoked or has expired, whoever has it by now', async () => {
  const { keys } = shared;
  const owner = 'comes back';
  const create = async (more: object = {}) =>
    (await keys('create', { ...free, owner, once: true, ...more })).body;
  const ids = new Set<string>();
  for (const end of ['revoke', 'expire', 'give away', 'revoke']) {
    const { id, isNew } = await create();
    expect([isNew, ids.has(id)]).toEqual([true, false]);
    ids.add(id);
    await keys('ban', { id, for: '1h' });
    expect(await create()).toMatchObject({ id, isNew: false, state: 'banned' });
    expect(await create({ name: 'another' })).toMatchObject({ isNew: ids.size === 1 });
    if (end === 'revoke') await keys('revoke', { id });
    else if (end === 'expire')
      await execute(databaseUrl, 'UPDATE api_keys SET expires_at = now() WHERE id = $1', [id]);
    else await keys('set-owner', { id, owner: 'somebody else' });
  }
});

test('on the command line, --once says that the key was there; it needs an owner, and has no key to print alone', async () => {
  const environment = { DATABASE_URL: databaseUrl };
  const create = ['keys', 'create', '--name', 'x', '--plan', 'free', '--once'];
  const first = await runInProcess([...create, '--owner', 'command'], environment);
  expect(first.output).toMatch(/\n\n(?:by_test_\w+)\n\nKeep it now/);
  const again = await runInProcess([...create, '--owner', 'command'], environment);
  expect([again.code, again.output]).toEqual([
    0,
    expect.stringMatching(/\n\nThe key was issued before.+rotate it\.\n$/),
  ]);
  expect(again.output).not.toMatch(/by_test_\w{10}/);
  for (const [option, message] of [
    ['--json', /--once needs --owner/],
    ['-q', /cannot be used with option '--once'/],
  ] as const)
    expect(await runInProcess([...create, option], environment)).toEqual({
      code: 2,
      output: expect.stringMatching(message),
    });
});

test('a made-up billing page: deliveries that come three times, an upgrade, a lost answer, a cancellation', async () => {
  const { url, keys } = shared;
  const service = await startService({ databaseUrl });
  onTestFinished(() => service.close());
  const post = (command: string, options: object) =>
    fetch(`${url}/${command}`, { method: 'POST', headers: bearer(TOKEN), body: JSON.stringify(options) });
  const page = createServer(async ({ url: path = '' }, response) => {
    const { searchParams, pathname } = new URL(path, 'http://page');
    const owner = searchParams.get('customer');
    const webhooks: Readonly<Record<string, () => Promise<Response>>> = {
      '/signed-up': () => post('create', { ...free, owner, once: true }),
      '/paid': () => post('set-plan', { owner, plan: searchParams.get('plan'), yes: true }),
      '/lost': async () => post('rotate', { id: (await (await post('list', { owner })).json())[0].id }),
      '/cancelled': () => post('revoke', { owner, yes: true }),
    };
    const answer = await webhooks[pathname]?.();
    response.writeHead(answer?.status ?? 404).end(await answer?.text());
  }).listen(0, '127.0.0.1');
  await once(page, 'listening');
  onTestFinished(() => void page.close());
  const visit = async (path: string) => {
    const answer = await fetch(`http://127.0.0.1:${(page.address() as AddressInfo).port}${path}`);
    return { status: answer.status, body: await answer.json() };
  };
  const statusOf = async (key: string) => (await createCaller({ url: service.url, key })(list.path)).status;

  const deliveries = await Promise.all(Array.from({ length: 3 }, () => visit('/signed-up?customer=cus_7')));
  const issued = deliveries.flatMap(({ body }) => body.key ?? []);
  expect([deliveries.map(({ status }) => status), issued.length]).toEqual([[200, 200, 200], 1]);
  expect(await statusOf(issued[0])).toBe(200);
  expect((await visit('/paid?customer=cus_7&plan=business')).body).toMatchObject([{ plan: 'business' }]);
  const { body: replaced } = await visit('/lost?customer=cus_7');
  expect(await statusOf(replaced.key)).toBe(200);
  await expect.poll(() => statusOf(issued[0])).toBe(401);
  expect((await visit('/cancelled?customer=cus_7')).status).toBe(200);
  await expect.poll(() => statusOf(replaced.key)).toBe(401);
  expect((await visit('/cancelled?customer=cus_7')).status).toBe(404);
  expect((await keys('list', { owner: 'cus_7' })).body).toMatchObject([
    { plan: 'business', state: 'revoked' },
  ]);
});

test('without a token of 32 characters it does not start, and says so on one line', async () => {
  const folder = await createTemporaryFolder();
  const empty = join(folder, 'empty');
  await writeFile(empty, '\n');
  for (const [environment, message] of [
    [{}, /^KEYS_TOKEN, or the file KEYS_TOKEN_FILE, must hold a token of at least 32 /],
    [{ KEYS_TOKEN: 'a'.repeat(31) }, /at least 32 /],
    [{ KEYS_TOKEN: `${TOKEN} short` }, /at least 32 /],
    [{ KEYS_TOKEN: 'é'.repeat(32) }, /visible ASCII/],
    [{ KEYS_TOKEN: [1, 2, 3].map((n) => TOKEN + n).join(' ') }, /may have two tokens/],
    [{ KEYS_TOKEN: `billing ${TOKEN}\nsign-up ${TOKEN}` }, /No token may be repeated/],
    [{ KEYS_TOKEN: [1, 2, 3].map((n) => `billing ${TOKEN}${n}`).join('\n') }, /may have two tokens/],
    [{ KEYS_TOKEN: `billing ${TOKEN}\nsign-up short` }, /at least 32 /],
    [{ KEYS_TOKEN: `_billing ${TOKEN}` }, /NAME TOKEN/],
    [{ KEYS_TOKEN: `billing page ${TOKEN}` }, /NAME TOKEN/],
    [{ KEYS_TOKEN: `${'b'.repeat(32)}! "${TOKEN}"` }, /begins or ends with a quote/],
    [{ KEYS_TOKEN: `"${TOKEN}"` }, /begins or ends with a quote, which would be part of it/],
    [{ KEYS_TOKEN_FILE: empty }, /^KEYS_TOKEN_FILE names an empty file/],
    [{ KEYS_TOKEN_FILE: folder }, /^KEYS_TOKEN_FILE does not name a regular file/],
    [{ KEYS_TOKEN_FILE: join(folder, 'none') }, /^KEYS_TOKEN_FILE cannot be read/],
    [{ KEYS_TOKEN: TOKEN, KEYS_TOKEN_FILE: empty }, /^KEYS_TOKEN and KEYS_TOKEN_FILE are both set/],
  ] as const) {
    const port = String(await freePort());
    const variables = { DATABASE_URL: databaseUrl, ...environment };
    const { code, output } = await runInProcess(['keys', 'serve', '--port', port], variables);
    expect([code, output]).toEqual([1, expect.stringMatching(message)]);
    expect(output).toMatch(/^[^\n]+\n$/);
    expect(output).not.toContain(TOKEN);
  }
});

test('tokens of KEYS_TOKEN_FILE are replaced without a restart, by way of two; a file without any changes nothing', async () => {
  const path = join(await createTemporaryFolder(), 'token');
  const [before, after] = ['b'.repeat(32), 'c'.repeat(64)];
  await writeFile(path, `${before}\n`);
  const { keys, program } = await start({ KEYS_TOKEN: '', KEYS_TOKEN_FILE: path });
  const read = () =>
    Promise.all([before, after].map(async (token) => (await keys('list', {}, bearer(token))).status));
  expect(await read()).toEqual([200, 401]);
  await writeFile(path, `${before}\n${after}\n`);
  expect(await read()).toEqual([200, 200]);
  for (const text of ['', 'short', `${after} ${after} ${after}`]) {
    await writeFile(path, text);
    expect(await read()).toEqual([200, 200]);
  }
  await program.until(/must hold a token/);
  await writeFile(path, after);
  expect(await read()).toEqual([401, 200]);
});

test('the record of keys and the log name the program whose token a change was done with, also while it is replaced', async () => {
  const path = join(await createTemporaryFolder(), 'token');
  const tokens = ['billing', 'billing', 'sign-up', undefined].map((name) => ({
    name,
    token: randomBytes(16).toString('hex'),
  }));
  await writeFile(path, `${tokens.map(({ name = '', token }) => `${name} ${token}`).join('\n\n')}\n`);
  const { keys, program } = await start({ KEYS_TOKEN: '', KEYS_TOKEN_FILE: path });
  const ids = await Promise.all(
    tokens.map(async ({ token }) => {
      const { id } = (await keys('create', free, bearer(token))).body;
      await keys('revoke', { id }, { ...bearer(token), 'x-request-id': id });
      return id;
    }),
  );
  for (const [index, { name, token }] of tokens.entries()) {
    const { body } = await keys('history', { id: ids[index] }, bearer(token));
    const caller = `boatyard keys serve${name === undefined ? '' : ` for ${name}`} by `;
    expect(body).toHaveLength(2);
    for (const { applicationName } of body) expect(applicationName.startsWith(caller)).toBe(true);
    await program.until(new RegExp(`"command":"revoke".*"reqId":"${ids[index]}"`));
    const line = program
      .output()
      .split('\n')
      .find((each) => each.includes(`"reqId":"${ids[index]}"`));
    expect(JSON.parse(line ?? '')).toMatchObject({ address: '127.0.0.1', command: 'revoke', status: 200 });
    expect(JSON.parse(line ?? '').program).toBe(name);
    expect(program.output()).not.toContain(token);
  }
});

test('a port that is in use, and an address of another machine, end the start with one line', async () => {
  for (const args of [
    ['--port', String(shared.port)],
    ['--port', String(await freePort()), '--host', '192.0.2.1'],
  ]) {
    const program = run('cli', ['keys', 'serve', ...args], { DATABASE_URL: databaseUrl, KEYS_TOKEN: TOKEN });
    expect(await program.ended).toBe(1);
    expect(program.output()).toMatch(/^It cannot listen on [^\n]+ with --host and --port\.\n$/);
  }
});

/** Keeps a key locked until it is called. */
async function lockKey(id: string): Promise<() => Promise<void>> {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  await client.query(`BEGIN; SELECT FROM api_keys WHERE id = '${id}' FOR UPDATE`);
  return () => client.end();
}

const countWaiting = async () =>
  (
    await execute(
      databaseUrl,
      "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()",
    )
  ).length;

test.each(['SIGTERM', 'SIGINT'] as const)(
  '%s finishes what runs, and ends the process with 0',
  async (signal) => {
    const { keys, program, url } = await start();
    const { id } = (await keys('create', free)).body;
    const release = await lockKey(id);
    const revoked = keys('revoke', { id });
    await expect.poll(countWaiting).toBe(1);
    program.child.kill(signal);
    await program.until(new RegExp(`${signal}: finishing running requests`));
    await expect(fetch(`${url}/health/live`)).rejects.toThrow();
    await release();
    expect(await revoked).toMatchObject({ status: 200, body: { state: 'revoked' } });
    expect(await program.ended).toBe(0);
  },
);

test('while PostgreSQL is away, commands and readiness are a 503, and work once it is back', async () => {
  const { hostname: host, port } = new URL(databaseUrl);
  const proxy = await startTcpProxy({ host, port: Number(port) });
  onTestFinished(() => proxy.close());
  const own = Object.assign(new URL(databaseUrl), { hostname: '127.0.0.1', port: String(proxy.port) });
  const { keys, url, program } = await start({ DATABASE_URL: own.href });
  const ready = async () => (await fetch(`${url}/health/ready`)).status;
  const readMetric = async () => (await (await fetch(`${url}/metrics`)).text()).split('\n').at(-2);
  expect([await ready(), (await keys('list')).status]).toEqual([200, 200]);
  expect(await readMetric()).toBe('boatyard_keys_ready 1');
  await proxy.cut();
  for (const [command, options] of [
    ['create', free],
    ['list', {}],
    ['usage', {}],
    ['history', {}],
  ] as const) {
    const { status, headers, body } = await keys(command, options);
    expect([command, status, headers.get('retry-after'), body.code]).toEqual([
      command,
      503,
      '1',
      'service_unavailable',
    ]);
  }
  await expect.poll(ready).toBe(503);
  expect(await readMetric()).toBe('boatyard_keys_ready 0');
  expect((await fetch(`${url}/health/live`)).status).toBe(200);
  await program.until(/"command":"create","status":503,.*"err"/);
  await program.until(/a database connection broke/);
  await proxy.restore();
  await expect.poll(async () => (await keys('create', free)).status).toBe(200);
  for (const line of program.output().trim().split('\n'))
    expect(JSON.parse(line)).toMatchObject({ level: expect.any(Number), msg: expect.any(String) });
  await expect.poll(ready).toBe(200);
});

test('as the role of --grant-keys-to, it manages keys, and neither reads the store nor changes usage or the record', async () => {
  const ownerUrl = await createTestDatabase();
  const role = `keys_${randomBytes(4).toString('hex')}`;
  await execute(ownerUrl, `CREATE ROLE ${role} LOGIN PASSWORD '${role}'`);
  onTestFinished(async () => void (await execute(ownerUrl, `DROP OWNED BY ${role}; DROP ROLE ${role}`)));
  const url = Object.assign(new URL(ownerUrl), { username: role, password: role }).href;
  const refused = run('cli', ['keys', 'serve', '--port', '1'], { DATABASE_URL: url, KEYS_TOKEN: TOKEN });
  expect(await refused.ended).not.toBe(0);
  expect(refused.output()).toMatch(/permission denied/);
  const granted = await runInProcess(['migrate', '--grant-keys-to', role], { DATABASE_URL: ownerUrl });
  expect(granted.output).toContain(`granted "${role}" what keys serve needs`);
  const { keys, url: base } = await start({ DATABASE_URL: url });
  const { id } = (await keys('create', { ...free, owner: 'x', once: true })).body;
  for (const [command, options] of [
    ['rotate', { id, overlap: '1h' }],
    ['set-plan', { id, plan: 'pro' }],
    ['set-scopes', { id, scopes: [list.scope] }],
    ['set-owner', { id, owner: 'y' }],
    ['ban', { id, for: '1h' }],
    ['unban', { id }],
    ['list', {}],
    ['show', { id }],
    ['usage', {}],
    ['usage', { id }],
    ['history', { id }],
    ['revoke', { id }],
  ] as const) {
    expect([command, (await keys(command, options)).status]).toEqual([command, 200]);
  }
  for (const sql of [
    `SELECT FROM ${TABLE}`,
    `SELECT FROM ${OTHER_TABLE}`,
    'SELECT FROM idempotent_creates',
    'SELECT FROM insert_turns FOR UPDATE',
    'DELETE FROM api_keys',
    'TRUNCATE api_keys',
    'ALTER TABLE api_keys DISABLE TRIGGER ALL',
    'UPDATE api_key_usage SET requests = 0',
    'DELETE FROM api_key_usage',
    `INSERT INTO api_key_usage (api_key_id, day, operation, requests) VALUES ('${id}', now(), 'x', 1)`,
    "UPDATE api_key_history SET session_role = 'x'",
    'DELETE FROM api_key_history',
    'TRUNCATE api_key_history',
    'DELETE FROM _prisma_migrations',
    'CREATE TABLE own (id int)',
  ])
    await expect(execute(url, sql), sql).rejects.toThrow(/permission denied|must be owner/);
  const ready = async () => (await fetch(`${base}/health/ready`)).status;
  expect(await ready()).toBe(200);
  await execute(ownerUrl, `REVOKE INSERT ON api_key_history FROM ${role}`);
  await expect.poll(ready).toBe(503);
  expect((await keys('create', free)).body).toMatchObject({
    status: 503,
    message: expect.stringMatching(/permission/),
  });
  const missing = run('cli', ['keys', 'serve', '--port', '1'], { DATABASE_URL: url, KEYS_TOKEN: TOKEN });
  expect(await missing.ended).toBe(1);
  expect(missing.output()).toMatch(/lacks INSERT on api_key_history\..* --grant-keys-to ROLE\n$/);
});

test('readiness says that a trigger of the record is off, and that migrations are missing', async () => {
  const own = await createTestDatabase();
  const { url } = await start({ DATABASE_URL: own });
  const ready = async () => {
    const response = await fetch(`${url}/health/ready`);
    return [response.status, await response.json()];
  };
  expect(await ready()).toEqual([200, { status: 'ok' }]);
  await execute(own, 'ALTER TABLE api_keys DISABLE TRIGGER api_keys_history');
  await expect
    .poll(ready)
    .toEqual([200, { status: 'ok', warning: expect.stringContaining('api_keys_history') }]);
  await execute(own, 'DELETE FROM _prisma_migrations');
  await expect.poll(ready).toEqual([503, expect.objectContaining({ code: 'service_unavailable' })]);
});
