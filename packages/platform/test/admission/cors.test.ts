import { createCaller, post } from '@animal-store/platform/testing';
import { expect, onTestFinished, test } from 'vitest';
import { create, list, read, resources } from '#operations-under-test';
import { createChecker } from '../support/openapi-checker.js';
import { startService, useService } from '../support/test-service.js';

const SHOP = 'https://shop.example';
/** A page in an app, whose origin has a scheme of its own */
const APP = 'capacitor://localhost';
const { operations } = createChecker(resources);
const restMethods = [...new Set(['HEAD', ...operations.map(({ method }) => method)])].sort();

const { call } = useService({ corsOrigins: [SHOP, APP, 'http://localhost:5173'] });

const preflight = (origin: string) => ({
  method: 'OPTIONS',
  key: null,
  headers: {
    origin,
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'authorization,content-type,idempotency-key',
  },
});

test('a preflight from a configured origin needs no key, over both protocols', async () => {
  for (const path of [list.path, read.pathOf(1), create.trpc, `${list.trpc},${read.name}?batch=1`]) {
    const { status, headers, body } = await call(path, preflight(SHOP));
    expect([path, status, body]).toEqual([path, 204, undefined]);
    expect(headers.get('access-control-allow-origin')).toBe(SHOP);
    const methods = path.startsWith('/v1') ? restMethods : ['GET', 'HEAD', 'POST'];
    expect(headers.get('access-control-allow-methods')?.split(', ').sort()).toEqual(methods);
    expect(headers.get('access-control-allow-headers')).toBe('authorization,content-type,idempotency-key');
    expect(headers.get('vary')).toContain('Origin');
  }
});

test('an app whose origin is configured may call, too', async () => {
  const preflighted = await call(list.path, preflight(APP));
  const { status, headers } = await call(list.path, { headers: { origin: APP } });
  expect([preflighted.status, status]).toEqual([204, 200]);
  for (const each of [preflighted.headers, headers])
    expect(each.get('access-control-allow-origin')).toBe(APP);
});

test('a preflight from any other origin is a 405 without CORS headers', async () => {
  for (const origin of [
    'https://evil.example',
    'https://shop.example.evil.example',
    'http://shop.example',
    'null',
  ]) {
    const { status, headers, body } = await call(list.path, preflight(origin));
    expect([origin, status, body.code]).toEqual([origin, 405, 'method_not_allowed']);
    expect(headers.get('access-control-allow-origin')).toBeNull();
  }
});

test('a preflight of an unknown path is a 404', async () => {
  for (const path of ['/v1/nope', '/trpc/nope', '/trpc/a/b']) {
    expect([path, (await call(path, preflight(SHOP))).status]).toEqual([path, 404]);
  }
});

test('OPTIONS that is not a preflight is rejected like any other method', async () => {
  expect((await call(list.path, { method: 'OPTIONS', headers: { origin: SHOP } })).status).toBe(405);
  expect((await call('/v1/nope', { method: 'OPTIONS', headers: { origin: SHOP } })).status).toBe(404);
  expect((await call('/v1/nope', { method: 'OPTIONS', key: null })).status).toBe(404);
});

test('an OPTIONS request that names no method is rejected in words of the service, over every protocol', async () => {
  for (const path of [list.path, list.trpc, '/mcp']) {
    const headers = { origin: SHOP, 'access-control-request-method': '' };
    const { status, body, headers: responded } = await call(path, { method: 'OPTIONS', key: null, headers });
    const { code } = body.error?.data.error ?? body;
    expect([path, status, code]).toEqual([path, 405, 'method_not_allowed']);
    expect(responded.get('access-control-allow-origin')).toBe(SHOP);
  }
});

test('a script of a configured origin may read every response, with the headers that it needs', async () => {
  const headers = { origin: SHOP };
  const responses = [
    await call(list.path, { headers }),
    await call(create.path, post(create.body, headers)),
    await call(list.path, { headers, key: null }),
    await call('/v1/nope', { headers }),
    await call(create.path, post('{', headers)),
    await call(list.trpc, { headers }),
    await call('/trpc/nope', { headers }),
  ];
  for (const response of responses) {
    expect(response.headers.get('access-control-allow-origin')).toBe(SHOP);
    const exposed = response.headers.get('access-control-expose-headers') ?? '';
    for (const name of [
      'X-RateLimit-Remaining',
      'RateLimit',
      'Retry-After',
      'Link',
      'X-Next-Cursor',
      'Location',
      'WWW-Authenticate',
      'Deprecation',
      'Sunset',
    ]) {
      expect(exposed.split(', ')).toContain(name);
    }
    expect(response.headers.get('vary')).toContain('Origin');
  }
});

test('without configured origins there are no CORS headers', async () => {
  const closed = await startService();
  const { status, headers } = await createCaller(closed)(list.path, preflight(SHOP));
  expect([status, headers.get('access-control-allow-origin'), headers.get('vary')]).toEqual([
    405,
    null,
    null,
  ]);
  await closed.close();
});

test('localhost stands for every origin on this machine, whatever its port, and for no other', async () => {
  const local = await startService({ corsOrigins: 'localhost' });
  onTestFinished(() => local.close());
  const callLocal = createCaller(local);
  for (const origin of [
    'http://localhost:5173',
    'http://localhost',
    'https://localhost:8443',
    'http://127.0.0.1:3001',
    'http://[::1]:4173',
    'http://shop.localhost:5173',
  ]) {
    const { status, headers } = await callLocal(create.trpc, preflight(origin));
    expect([origin, status, headers.get('access-control-allow-origin')]).toEqual([origin, 204, origin]);
  }
  for (const origin of [
    'http://localhost.evil.example',
    'http://evillocalhost:5173',
    'http://127.0.0.1.evil.example',
    'http://192.168.0.7:5173',
    'http://localhost:5173/',
    'http://user@localhost:5173',
    'ftp://localhost',
    'capacitor://localhost',
    'null',
    'localhost',
  ]) {
    const { status, headers } = await callLocal(create.trpc, preflight(origin));
    expect([origin, status, headers.get('access-control-allow-origin')]).toEqual([origin, 405, null]);
  }
});
