import { mkdtemp } from 'node:fs/promises';
import { createServer, request as forward, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Browser, findChromium, launchBrowser, openPage, type WatchedPage } from '../support/browser.js';
import { type Caller, callerOf, post, startService, type TestService } from '../support/harness.js';

/** The summaries of the operations are the document's to choose; their ids and paths are not. */
const OPERATIONS = ['listPets', 'createPet', 'getPet', 'listOrders'];

let service: TestService;
let call: Caller;
/** Another site, which is allowed to call, and a proxy that shows the service under a prefix */
let shop: Listener;
let proxy: Listener;

beforeAll(async () => {
  shop = await listen((_request, response) =>
    response.setHeader('content-type', 'text/html').end('<link rel="icon" href="data:,">A shop'),
  );
  service = await startService({ corsOrigins: [shop.origin] });
  call = callerOf(service);
  proxy = await listen((request, response) => {
    const { url = '', method, headers } = request;
    const passed = forward(service.url + url.replace(/^\/store/, ''), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    request.pipe(passed);
  });
});
afterAll(async () => {
  for (const server of [shop, proxy]) server?.close();
  await service?.close();
});

interface Listener {
  readonly origin: string;
  close(): void;
}

async function listen(listener: RequestListener): Promise<Listener> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Asks without a key and reads all of the answer: an answer left unread would keep the service from ending. */
async function get(path: string, headers: Record<string, string> = {}, method = 'GET') {
  const response = await fetch(service.url + path, { method, headers, redirect: 'manual' });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

async function scriptPaths(): Promise<string[]> {
  const { text } = await get('/docs');
  return [...text.matchAll(/<script src="([^"]+)"/g)].map(([, source = '']) => `/${source}`);
}

/** Directives of a Content-Security-Policy by name */
function policyOf(headers: Headers): Record<string, string> {
  const directives = headers.get('content-security-policy')?.split(';') ?? [];
  return Object.fromEntries(directives.map((directive) => directive.trim().split(/ (.*)/, 2)));
}

describe('the page over plain HTTP', () => {
  test('its policy lets only scripts of this server run and only this server be called', async () => {
    const { status, headers } = await get('/docs');
    expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect(policyOf(headers)).toEqual({
      'default-src': "'none'",
      'script-src': "'self'",
      'style-src': "'unsafe-inline'",
      'img-src': "'self' data:",
      'connect-src': "'self'",
      'object-src': "'none'",
      'base-uri': "'none'",
      'form-action': "'none'",
      'frame-ancestors': "'none'",
    });
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('referrer-policy')).toBe('no-referrer');
    expect(headers.get('strict-transport-security')).toBe('max-age=31536000');
  });

  test('it has no inline script, and every script that it names is served without a key', async () => {
    const { text } = await get('/docs');
    expect(text).not.toMatch(/<script(?! src="docs\/)/);
    const paths = await scriptPaths();
    expect(paths.length).toBeGreaterThan(1);
    for (const path of paths) {
      const { status, headers } = await get(path);
      expect([path, status]).toEqual([path, 200]);
      expect(headers.get('content-type')).toBe('text/javascript; charset=utf-8');
    }
  });

  test('scripts are kept for good under names that hold their hash, and answered 304 to who has them', async () => {
    for (const path of await scriptPaths()) {
      const { headers } = await get(path);
      expect(path).toMatch(/\.[0-9a-f]{16}\.js$/);
      expect(headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
      const etag = headers.get('etag') ?? '';
      for (const known of [etag, `"other", ${etag}`, etag.replace('W/', ''), '*']) {
        const again = await get(path, { 'if-none-match': known });
        expect([known, again.status, again.text]).toEqual([known, 304, '']);
        expect(again.headers.get('etag')).toBe(etag);
      }
      expect((await get(path, { 'if-none-match': '"other"' })).status).toBe(200);
    }
    expect((await get('/docs')).headers.get('cache-control')).toBe('no-cache');
  });

  test('scripts are compressed only for those who understand it', async () => {
    const path = (await scriptPaths()).find((name) => name.includes('scalar')) ?? '';
    const size = async (encodings: string) => {
      const { headers } = await get(path, { 'accept-encoding': encodings }, 'HEAD');
      expect(headers.get('vary')).toContain('Accept-Encoding');
      return [headers.get('content-encoding'), Number(headers.get('content-length'))] as const;
    };
    const [, whole] = await size('identity');
    for (const encodings of ['gzip', 'br, GZIP;q=0.5', 'gzip;q=1.0, *;q=0']) {
      const [encoding, length] = await size(encodings);
      expect([encodings, encoding]).toEqual([encodings, 'gzip']);
      expect(length).toBeLessThan(whole / 3);
    }
    for (const encodings of ['br', 'gzip;q=0', 'gzip; q=0.000, br', 'x-gzip']) {
      expect([encodings, await size(encodings)]).toEqual([encodings, [null, whole]]);
    }
  });

  test('HEAD answers like GET without a body, and a trailing slash leads to the page', async () => {
    const head = await get('/docs', {}, 'HEAD');
    const whole = await get('/docs', { 'accept-encoding': 'identity' });
    expect([head.status, head.text]).toEqual([200, '']);
    expect(head.headers.get('etag')).toBe(whole.headers.get('etag'));
    for (const method of ['GET', 'HEAD']) {
      const slash = await get('/docs/', {}, method);
      expect(slash.status).toBe(308);
      expect(new URL(slash.headers.get('location') ?? '', `${service.url}/docs/`).pathname).toBe('/docs');
    }
  });

  test('what is not there is a 404 of the service, in JSON', async () => {
    for (const path of ['/docs/nope.js', '/docs/..%2fpackage.json', '/docs/a/b', '/docs/__proto__', '/doc']) {
      const { status, headers, text } = await get(path);
      expect([path, status, headers.get('content-type')]).toEqual([path, 404, 'application/json']);
      expect(JSON.parse(text)).toEqual({ code: 'not_found', message: expect.any(String), status: 404 });
    }
  });
});

describe('security headers', () => {
  const EXPECTED = {
    'content-security-policy': "default-src 'none';frame-ancestors 'none'",
    'cross-origin-resource-policy': 'same-origin',
    'referrer-policy': 'no-referrer',
    'strict-transport-security': 'max-age=31536000',
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
  };

  test('every answer carries them: data, failures, unknown routes, preflights', async () => {
    const preflight = { origin: shop.origin, 'access-control-request-method': 'POST' };
    const answers = {
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
    };
    for (const [name, { headers }] of Object.entries(answers)) {
      const sent = Object.keys(EXPECTED).map((header) => [header, headers.get(header)]);
      expect([name, Object.fromEntries(sent)]).toEqual([name, EXPECTED]);
      expect(headers.get('x-powered-by')).toBeNull();
    }
  });

  test('browsers are bound to https only when the service is reached by it', async () => {
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
});

const executable = findChromium();
if (executable === undefined) {
  const message = 'No Chromium: set CHROMIUM or install one. The reference page is not tested in a browser.';
  if (process.env.CI === 'true') throw new Error(message);
  console.log(message);
}

describe.skipIf(executable === undefined)('the page in a browser', () => {
  let browser: Browser;
  let screenshots: string;

  beforeAll(async () => {
    browser = await launchBrowser(executable ?? '');
    screenshots = await mkdtemp(join(tmpdir(), 'animal-store-docs-'));
  });
  afterAll(() => browser?.close());

  /** The page, with the call of listPets opened and a key pasted */
  async function prepareCall(base: string, key: string) {
    const watched = await openPage(browser.context);
    const { page } = watched;
    await page.goto(`${base}/docs#tag/pets`);
    await page.getByPlaceholder('Token').first().fill(key);
    await page.getByRole('button', { name: /^Test Request.*get \/pets\)/ }).click();
    return { ...watched, client: page.getByRole('dialog') };
  }

  async function takeScreenshot(page: Page, name: string): Promise<void> {
    const path = join(screenshots, `${name}.png`);
    await page.screenshot({ path, animations: 'disabled' });
    console.log(`Screenshot: ${path}`);
  }

  function expectNoFaults({ origins, errors }: WatchedPage, origin = service.url): void {
    expect(errors).toEqual([]);
    expect([...origins]).toEqual([origin]);
  }

  test.each(['light', 'dark'] as const)('it lists all operations, in %s colours', async (colorScheme) => {
    const watched = await openPage(browser.context);
    const { page } = watched;
    await page.emulateMedia({ colorScheme });
    await page.goto(`${service.url}/docs/`);
    for (const summary of await readSummaries()) {
      await page.getByRole('navigation').getByText(summary, { exact: true }).waitFor();
    }
    await page.locator(`body.${colorScheme}-mode`).waitFor();
    const colour = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const [red = NaN] = colour.match(/\d+/g)?.map(Number) ?? [];
    expect(red > 128 ? 'light' : 'dark').toBe(colorScheme);
    await takeScreenshot(page, `page-${colorScheme}`);
    expectNoFaults(watched);
    await page.close();
  });

  async function readSummaries(): Promise<string[]> {
    const { body } = await call('/openapi.json');
    const operations = Object.values<Record<string, { operationId: string; summary: string }>>(body.paths)
      .flatMap((item) => Object.values(item))
      .filter(({ operationId }) => OPERATIONS.includes(operationId));
    expect(operations).toHaveLength(OPERATIONS.length);
    return operations.map(({ summary }) => summary);
  }

  test.each([
    ['', 'call'],
    ['/store', 'call-behind-proxy'],
  ])('a call made from it with a pasted key reaches the server it came from, at %j', async (prefix, name) => {
    const { body: pet } = await call('/v1/pets', post({ name: `Seen in ${name}`, categoryId: 1 }));
    const origin = prefix === '' ? service.url : proxy.origin;
    const { page, client, ...watched } = await prepareCall(origin + prefix, service.key);
    const sent = page.waitForRequest((request) => request.url().startsWith(`${origin}${prefix}/v1/pets`));
    await client.getByRole('button', { name: /^Send/ }).first().click();
    await sent;
    await client.getByText('200 OK').waitFor();
    await client.getByText(pet.name).waitFor();
    await takeScreenshot(page, name);
    expectNoFaults({ page, ...watched }, origin);
    await page.close();
  });

  test('a key that is not one is shown as refused', async () => {
    const { page, client, origins } = await prepareCall(service.url, 'as_test_no');
    await client.getByRole('button', { name: /^Send/ }).first().click();
    await client.getByText('401 Unauthorized').waitFor();
    await client.getByText('invalid_api_key').waitFor();
    expect([...origins]).toEqual([service.url]);
    await page.close();
  });

  test('a script of a configured origin reads the API, one of another origin does not', async () => {
    const { page } = await openPage(browser.context);
    const read = async (from: string) => {
      await page.goto(from);
      return page.evaluate(
        async ([url, key]) => {
          const headers = { authorization: `Bearer ${key}` };
          return fetch(`${url}/v1/pets`, { headers }).then(
            async (response) => [response.status, response.headers.get('x-ratelimit-limit') !== null],
            () => 'refused',
          );
        },
        [service.url, service.key],
      );
    };
    expect(await read(shop.origin)).toEqual([200, true]);
    expect(await read(shop.origin.replace('127.0.0.1', 'localhost'))).toBe('refused');
    await page.close();
  });
});
