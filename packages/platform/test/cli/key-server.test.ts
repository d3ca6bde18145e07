import { rm } from 'node:fs/promises';
import { createTemporaryFolder, execute } from '@animal-store/platform/testing';
import fc from 'fast-check';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { definition } from '#operations-under-test';
import { createKeyCommands } from '../../src/cli/keys-command.js';
import { BODY_LIMIT_BYTES } from '../../src/contract/bounds.js';
import { type KeyServer, send, startKeyServer, TOKEN } from '../support/key-server.js';
import { runKeys } from '../support/process.js';
import { exchange } from '../support/raw-http.js';
import { createTestDatabase } from '../support/test-service.js';

let databaseUrl: string;
let server: KeyServer;
beforeAll(async () => {
  databaseUrl = await createTestDatabase();
  server = await startKeyServer({ DATABASE_URL: databaseUrl, APP_ENV: 'staging' });
});
afterAll(() => server.stop());

const keys: KeyServer['keys'] = (...request) => server.keys(...request);
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const pro = { name: 'shop', plan: 'pro' };
const countKeys = async () => (await execute(databaseUrl, 'SELECT FROM api_keys')).length;
const errorBody = (status: number, code: unknown, message: unknown) => ({ code, message, status });

test('a command responds with what the command line prints, and its options are members in camelCase', async () => {
  const created = await keys('create', {
    ...{ name: 'shop', plan: 'enterprise', perMinute: 5, perDay: '9', owner: 'Açmé 😀', expires: '30d' },
    scopes: [definition.scopes[0]],
  });
  expect(created).toMatchObject({
    status: 200,
    body: { perMinute: 5, perDay: 9, scopes: [definition.scopes[0]] },
  });
  expect(created.headers.get('cache-control')).toBe('no-store');
  const { id, key, ...rest } = created.body;
  expect(key).toMatch(/^by_test_/);
  const shown = await runKeys({ DATABASE_URL: databaseUrl }, 'show', id);
  expect(shown).toMatchObject(rest);
  expect((await keys('show', { id })).body).toEqual(shown);
  expect((await keys('list', { owner: 'Açmé 😀' })).body).toEqual([
    expect.objectContaining({ id, owner: 'Açmé 😀' }),
  ]);
  expect((await keys('set-plan', { id, plan: 'business' })).body).toMatchObject({ plan: 'business' });
  const rotate = (members: object) => keys('rotate', { id, overlap: '1h', ...members });
  expect((await rotate({})).body.key).not.toBe(key);
  // What is sent again because the answer was lost ends no key.
  const repeated = await rotate({});
  expect([repeated.status, repeated.body]).toEqual([
    409,
    expect.objectContaining({
      code: 'conflict',
      message: expect.stringMatching(/overlap.*or rotate with again, /),
    }),
  ]);
  expect((await rotate({ again: true })).status).toBe(200);
  expect((await keys('ban', { id, for: '8h' })).body.state).toBe('banned');
  expect((await keys('unban', { id })).body.state).toBe('active');
  expect((await keys('usage', { id })).body).toMatchObject({ id, requests: 0 });
  expect((await keys('set-owner', { id, none: true })).body.owner).toBeNull();
  expect((await keys('revoke', { id })).body.state).toBe('revoked');
  expect((await keys('list')).status).toBe(200);
});

test('the record of keys names keys serve for each change', async () => {
  const { id } = (await keys('create', pro)).body;
  const { body } = await keys('history', { id });
  expect(body).toEqual([
    expect.objectContaining({
      applicationName: expect.stringMatching(new RegExp(`^${definition.identity.name} keys serve by `)),
    }),
  ]);
});

test.each([
  ['create', { plan: 'pro' }, 400, /^name: is required/],
  ['create', { ...pro, plan: 'gold' }, 400, /^plan: is one of free, pro/],
  ['create', { ...pro, perDay: 5 }, 400, /^plan enterprise needs perMinute and perDay/],
  ['create', { ...pro, once: true }, 400, /^once needs owner/],
  ['show', {}, 400, /^id: is required/],
  ['revoke', { owner: 'nobody', yes: true }, 404, /or it has none/],
  ['revoke', { id: '0b54e7c0-3f6e-4d3a-9a53-6d8f4ce1a111' }, 404, /There is no key with the id/],
] as const)('%s %j is a %i whose message names members', async (command, members, status, message) => {
  const { body } = await keys(command, members);
  expect(body).toEqual(
    errorBody(status, status === 404 ? 'not_found' : 'invalid_request', expect.stringMatching(message)),
  );
  expect(body.message).not.toMatch(/^error/);
});

test('a revoked key that is to be rotated is a 409; --owner without yes is a 400 that changes nothing', async () => {
  const { id } = (await keys('create', { ...pro, owner: 'kept' })).body;
  const { body } = await keys('revoke', { owner: 'kept' });
  expect(body).toEqual(errorBody(400, 'invalid_request', expect.stringContaining('Nothing was changed')));
  expect((await keys('show', { id })).body.state).toBe('active');
  await keys('revoke', { owner: 'kept', yes: true });
  expect((await keys('rotate', { id })).body).toEqual(
    errorBody(409, 'conflict', expect.stringContaining('is revoked, so nothing was changed')),
  );
});

test.each([
  '--json',
  '-q',
  '--',
  '--help',
  '--version',
  '--plan=free',
  '-x',
  '$(id)',
  "'; DROP TABLE api_keys; --",
])('a name or an owner of %j is a name, and no option', async (text) => {
  const { status, body } = await keys('create', { name: text, plan: 'pro', owner: text });
  expect([status, body]).toEqual([200, expect.objectContaining({ name: text, owner: text, plan: 'pro' })]);
  expect((await keys('revoke', { owner: text, yes: true })).body).toHaveLength(1);
});

test.each([
  ['history', 'deleteBefore', '2026-01-01'],
  ['history', 'delete-before', '2026-01-01'],
  ['history', '--delete-before', '2026-01-01'],
  ['history', 'since=1d --delete-before', '2026-01-01'],
  ['create', 'quiet', true],
  ['create', 'json', false],
  ['create', 'help', true],
  ['create', 'version', true],
  ['create', 'per-minute', 5],
  ['create', 'id', '0b54e7c0-3f6e-4d3a-9a53-6d8f4ce1a111'],
  ['create', 'constructor', 'x'],
  ['usage', 'csv', true],
])('%s has no member %j, and names those that there are', async (command, name, value) => {
  const before = await countKeys();
  const own = command === 'create' ? pro : {};
  const { body } = await keys(command, { ...own, [name]: value });
  expect(body.status).toBe(400);
  expect(body.message).toContain(`There is no member ${JSON.stringify(name)}: those of ${command} are `);
  expect(body.message.split(' are ')[1]).not.toMatch(/deleteBefore|quiet|json|csv/);
  expect(await countKeys()).toBe(before);
});

test('a member __proto__ is none, either', async () => {
  const { body } = await keys('create', '{"name": "x", "plan": "pro", "__proto__": {"once": true}}');
  expect(body.message).toContain('There is no member "__proto__"');
});

test.each([
  '0b54e7c0',
  '0b54',
  'by_test_abcd',
  '',
  '--yes',
  5,
  null,
  ['0b54e7c0-3f6e-4d3a-9a53-6d8f4ce1a111'],
  {},
])('an id of %j is refused, because it is not complete', async (id) => {
  for (const command of ['show', 'rotate', 'revoke', 'usage', 'history'])
    expect((await keys(command, { id })).body).toEqual(
      errorBody(400, 'invalid_request', 'id must be a complete id.'),
    );
});

test.each([
  ['name', null],
  ['name', {}],
  ['name', ['a', 'b']],
  ['name', true],
  ['name', ''],
  ['name', '\u0000'],
  ['name', '\ud800'],
  ['owner', '\udfff'],
  ['owner', 'é'.repeat(201)],
  ['once', 'true'],
  ['once', 1],
  ['scopes', [[definition.scopes[0]]]],
  ['scopes', [definition.scopes.join(), 5]],
  ['scopes', []],
  ['perMinute', -1],
  ['perMinute', 1e21],
  ['expires', '99999999999d'],
  ['expires', 'a'.repeat(500)],
])('%s: %j is a 400', async (name, value) => {
  const { status, body } = await keys('create', { owner: 'x', ...pro, [name]: value });
  expect([status, body.code]).toEqual([400, 'invalid_request']);
});

describe('what is no request of the operator', () => {
  const body = JSON.stringify(pro);
  const valid = { method: 'POST', path: '/create', headers: bearer(TOKEN), body };

  test.each([
    ['no token', { headers: {} }, 401],
    ['another token', { headers: bearer('b'.repeat(32)) }, 401],
    ['the beginning of the token', { headers: bearer(TOKEN.slice(1)) }, 401],
    ['more than the token', { headers: bearer(`${TOKEN}a`) }, 401],
    ['the token twice', { headers: bearer(`${TOKEN} ${TOKEN}`) }, 401],
    ['the token as a password', { headers: { authorization: `Basic ${btoa(`x:${TOKEN}`)}` } }, 401],
    ['the token in the path', { path: `/create?token=${TOKEN}`, headers: {} }, 401],
    ['an Origin', { headers: { ...bearer(TOKEN), origin: 'https://shop.example' } }, 403],
    ['an Origin of null', { headers: { ...bearer(TOKEN), origin: 'null' } }, 403],
    ['a preflight', { method: 'OPTIONS', headers: { origin: 'https://shop.example' }, body: '' }, 403],
    ['GET', { method: 'GET', body: '' }, 404],
    ['PUT', { method: 'PUT' }, 404],
    ['PROPFIND', { method: 'PROPFIND' }, 404],
    ['another path', { path: '/migrate' }, 404],
    ['serve itself', { path: '/serve' }, 404],
    ['a path with a slash', { path: '/create/' }, 404],
    ['a path of two slashes', { path: '//create' }, 404],
    ['an encoded path', { path: '/%63reate' }, 404],
    ['a broken escape', { path: '/%zz' }, 404],
    ['a query', { path: '/create?plan=free' }, 404],
    ['a name of Object.prototype', { path: '/constructor' }, 404],
    ['the absolute form', { path: 'http://127.0.0.1/create' }, 404],
    ['a probe that posts', { path: '/health/live' }, 404],
    ['no JSON', { body: 'name=shop&plan=pro' }, 400],
    ['half of JSON', { body: body.slice(0, -1) }, 400],
    ['a list', { body: `[${body}]` }, 400],
    ['null', { body: 'null' }, 400],
    ['a text', { body: '"create"' }, 400],
    ['bytes that are not UTF-8', { body: Buffer.from('{"name": "\xe9", "plan": "pro"}', 'latin1') }, 400],
    ['deep nesting', { body: `{"scopes": ${'['.repeat(30_000)}${']'.repeat(30_000)}}` }, 400],
    [
      'compression',
      { headers: { ...bearer(TOKEN), 'content-encoding': 'gzip' }, body: Buffer.from([31, 139, 8]) },
      400,
    ],
    ['64 KiB and a byte', { body: JSON.stringify({ name: 'x'.repeat(BODY_LIMIT_BYTES) }) }, 413],
    ['a megabyte', { body: ' '.repeat(2 ** 20) }, 413],
  ])('%s: refused, with an error in the form of all', async (_what, change, status) => {
    const before = await countKeys();
    const response = await send(server, { ...valid, ...change });
    expect(response.status).toBe(status);
    expect(JSON.parse(response.text)).toEqual(errorBody(status, expect.any(String), expect.any(String)));
    expect(response.text).not.toContain(TOKEN);
    expect(await countKeys()).toBe(before);
  });

  test.each([
    ['garbage', 'garbage\r\n\r\n', /^HTTP\/1\.1 400 /],
    [
      'two lengths',
      'POST /create HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n',
      /^HTTP\/1\.1 400 /,
    ],
    [
      'a length and chunks',
      'POST /create HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
      /^HTTP\/1\.1 400 /,
    ],
    ['no Host', 'POST /create HTTP/1.1\r\n\r\n', /^HTTP\/1\.1 400 /],
    [
      'headers without end',
      `POST /create HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`,
      /^HTTP\/1\.1 431 /,
    ],
    ['CONNECT', 'CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n', /^$/],
    [
      'an upgrade',
      'GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n',
      /^HTTP\/1\.1 401 /,
    ],
  ])('malformed HTTP, %s, does not end the process', async (_what, bytes, answer) => {
    expect(await exchange(server.port, bytes)).toMatch(answer);
    expect((await fetch(`${server.url}/health/live`)).status).toBe(200);
  });
});

test('whatever JSON a command is sent, it does it or says what is wrong: never a 500', async () => {
  const names = [
    ...new Set(
      createKeyCommands(definition).flatMap(({ examples }) => examples.join(' ').match(/--[a-z-]+/g) ?? []),
    ),
  ];
  const members = names.map((name) =>
    name.slice(2).replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase()),
  );
  const value = fc.oneof(
    fc.constantFrom(
      'pro',
      'enterprise',
      '30d',
      '2026-01-01',
      'active',
      definition.scopes[0],
      true,
      5,
      ' ',
      '9999-12-31',
    ),
    fc.string({ unit: 'binary' }),
    fc.jsonValue(),
  );
  const body = fc.oneof(
    { weight: 4, arbitrary: fc.dictionary(fc.constantFrom('id', 'yes', 'once', 'none', ...members), value) },
    fc.record({ name: value, plan: fc.constantFrom('free', 'pro'), owner: value, expires: value }),
    fc.record({ id: fc.uuid(), plan: value, scopes: value, owner: value, for: value, overlap: value }),
    fc.jsonValue(),
  );
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...createKeyCommands(definition)), body, async ({ name }, sent) => {
      const { status } = await keys(name, JSON.stringify(sent));
      expect([200, 400, 404, 409]).toContain(status);
    }),
  );
});

test('the log has a line for each request with command, status and milliseconds, and neither tokens nor keys', async () => {
  const { key } = (await keys('create', { ...pro, owner: 'logged' })).body;
  await keys('create', { name: key, plan: key });
  await keys('show', { id: key });
  await send(server, { method: 'POST', path: `/${key}`, headers: bearer(TOKEN) });
  await send(server, { method: 'GET', path: '/list', headers: { ...bearer(key), 'x-request-id': key } });
  const { output } = server.program;
  const requests = () =>
    output()
      .split('\n')
      .filter((line) => line.includes('"msg":"request"'))
      .map((line) => JSON.parse(line));
  await expect
    .poll(() => requests().slice(-5))
    .toEqual([
      expect.objectContaining({
        command: 'create',
        method: 'POST',
        status: 200,
        durationMs: expect.any(Number),
      }),
      expect.objectContaining({ command: 'create', status: 400, code: 'invalid_request' }),
      expect.objectContaining({ command: 'show', status: 400 }),
      expect.objectContaining({ status: 404, code: 'not_found' }),
      expect.objectContaining({ command: 'list', status: 401, code: 'invalid_token' }),
    ]);
  expect(output()).not.toContain(TOKEN);
  expect(output()).not.toMatch(/by_test_\w{20}/);
});

test('without an answer to wait for, a client that leaves costs nothing: its command is done, and the log says 499', async () => {
  const owner = 'left';
  const { id } = (await keys('create', { ...pro, owner })).body;
  const body = JSON.stringify({ id });
  const leaves = new AbortController();
  const holder = new pg.Client(databaseUrl);
  await holder.connect();
  await holder.query(`BEGIN; SELECT FROM api_keys WHERE id = '${id}' FOR UPDATE`);
  const waiting = () =>
    execute(
      databaseUrl,
      `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`,
    );
  const revoked = fetch(`${server.url}/revoke`, {
    ...{ method: 'POST', headers: bearer(TOKEN), body, signal: leaves.signal },
  });
  await expect.poll(waiting).not.toEqual([]);
  leaves.abort();
  await expect(revoked).rejects.toThrow();
  await holder.query('COMMIT');
  await holder.end();
  await server.program.until(/"command":"revoke","status":499/);
  expect((await keys('show', { id })).body.state).toBe('revoked');
});

test('with the embedded PostgreSQL it is the same', async () => {
  const dataDir = await createTemporaryFolder();
  onTestFinished(() => rm(dataDir, { recursive: true }));
  const own = await startKeyServer({ DATA_DIR: dataDir });
  onTestFinished(async () => void (await own.stop()));
  expect((await own.keys('create', { ...pro, owner: 'x', once: true })).body.isNew).toBe(true);
  expect((await own.keys('create', { ...pro, owner: 'x', once: true })).body.isNew).toBe(false);
  expect(await own.stop()).toBe(0);
});
