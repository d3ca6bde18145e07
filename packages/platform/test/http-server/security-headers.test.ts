import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { post } from '@animal-store/platform/testing';
import helmet, { type HelmetOptions } from 'helmet';
import { expect, test } from 'vitest';
import { create, list } from '#operations-under-test';
import { startService, useService } from '../support/test-service.js';

const SHOP = 'https://shop.example';
const OPTIONS = {
  contentSecurityPolicy: {
    useDefaults: false,
    directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] },
  },
  strictTransportSecurity: { maxAge: 365 * 24 * 60 * 60, includeSubDomains: false },
  xFrameOptions: { action: 'deny' },
  // Browsers log a warning about this one where the service is reached over plain http.
  crossOriginOpenerPolicy: false,
  // These only affect documents, or browsers that no longer exist.
  originAgentCluster: false,
  xDnsPrefetchControl: false,
  xDownloadOptions: false,
  xPermittedCrossDomainPolicies: false,
  xXssProtection: false,
} satisfies HelmetOptions;
const EXPECTED = { ...helmetHeaders(OPTIONS), 'cache-control': 'no-store' };
const EXPECTED_OF_PAGE = helmetHeaders({
  ...OPTIONS,
  contentSecurityPolicy: {
    useDefaults: false,
    directives: {
      defaultSrc: ["'none'"],
      scriptSrc: ["'self'"],
      styleSrc: ["'self'", "'unsafe-inline'"],
      imgSrc: ["'self'", 'data:'],
      connectSrc: ["'self'"],
      objectSrc: ["'none'"],
      baseUri: ["'none'"],
      formAction: ["'none'"],
      frameAncestors: ["'none'"],
    },
  },
  xDnsPrefetchControl: true,
});

/** What helmet, which knows the names and spellings, would send. */
function helmetHeaders(options: HelmetOptions): object {
  const response = new ServerResponse(new IncomingMessage(new Socket()));
  helmet(options)(response.req, response, () => {});
  return { ...response.getHeaders() };
}

const { call, service } = useService({ corsOrigins: [SHOP] });

test('every response carries the headers that helmet would send, and no cache keeps it: data, errors, unknown routes, preflights', async () => {
  const preflight = { origin: SHOP, 'access-control-request-method': 'POST' };
  const responses = {
    list: await call(list.path),
    created: await call(create.path, post(create.body)),
    invalid: await call(create.path, post('{')),
    'no key': await call(list.path, { key: null }),
    'other method': await call(list.path, { method: 'PUT' }),
    'no route': await call('/v1/nope'),
    preflight: await call(list.path, { method: 'OPTIONS', key: null, headers: preflight }),
    procedure: await call(list.trpc),
    'no procedure': await call('/trpc/nope'),
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

test('the document, which is public, is kept by caches that ask again, with the same headers otherwise', async () => {
  const { headers } = await call('/openapi.json');
  const sent = Object.keys(EXPECTED).map((header) => [header, headers.get(header)]);
  expect(Object.fromEntries(sent)).toEqual({ ...EXPECTED, 'cache-control': 'no-cache' });
});

test('the reference page has the policy that helmet would write', async () => {
  const { headers } = await fetch(`${service.url}/docs`, { method: 'HEAD' });
  expect(Object.fromEntries(headers)).toMatchObject(EXPECTED_OF_PAGE);
});

test('browsers are told to insist on https only when PUBLIC_URL is https', async () => {
  const plain = await startService({ publicUrl: 'http://service.example' });
  try {
    for (const path of ['/docs', list.path, '/nope']) {
      const { headers, body } = await fetch(plain.url + path);
      // The service cannot close a connection whose response nobody reads.
      await body?.cancel();
      expect([path, headers.get('strict-transport-security')]).toEqual([path, null]);
      expect(headers.get('x-content-type-options')).toBe('nosniff');
    }
  } finally {
    await plain.close();
  }
});
