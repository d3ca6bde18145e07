import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Caller, createCaller, post, startService, type TestService } from '../support/test-service.js';

const SHOP = 'https://shop.example';
const EXPECTED = {
  'content-security-policy': "default-src 'none';frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'strict-transport-security': 'max-age=31536000',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
};

let service: TestService;
let call: Caller;

beforeAll(async () => {
  service = await startService({ corsOrigins: [SHOP] });
  call = createCaller(service);
});
afterAll(() => service?.close());

test('every response carries the security headers: data, errors, unknown routes, preflights', async () => {
  const preflight = { origin: SHOP, 'access-control-request-method': 'POST' };
  const responses = {
    list: await call('/v1/pets'),
    created: await call('/v1/pets', post({ name: 'Rex', categoryId: 1 })),
    invalid: await call('/v1/pets', post('{')),
    'no key': await call('/v1/pets', { key: null }),
    'other method': await call('/v1/pets', { method: 'PUT' }),
    'no route': await call('/v1/nope'),
    preflight: await call('/v1/pets', { method: 'OPTIONS', key: null, headers: preflight }),
    procedure: await call('/trpc/listPets'),
    'no procedure': await call('/trpc/nope'),
    document: await call('/openapi.json'),
    health: await call('/health/live'),
    'no path': await call('/nope'),
    'no static file': await call('/docs/nope.js'),
  };
  for (const [name, { headers }] of Object.entries(responses)) {
    const sent = Object.keys(EXPECTED).map((header) => [header, headers.get(header)]);
    expect([name, Object.fromEntries(sent)]).toEqual([name, EXPECTED]);
    expect(headers.get('x-powered-by')).toBeNull();
  }
});

test('browsers are told to insist on https only when PUBLIC_URL is https', async () => {
  const plain = await startService({ publicUrl: () => 'http://pets.example' });
  try {
    for (const path of ['/docs', '/v1/pets', '/nope']) {
      const { headers } = await fetch(plain.url + path);
      expect([path, headers.get('strict-transport-security')]).toEqual([path, null]);
      expect(headers.get('x-content-type-options')).toBe('nosniff');
    }
  } finally {
    await plain.close();
  }
});
