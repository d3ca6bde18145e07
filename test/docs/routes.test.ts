import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { GUIDES_FOLDER, listGuides } from '../guides/code-blocks.js';
import { expectErrorBody } from '../support/expect-error-body.js';
import { PUBLIC_URL, startService, type TestService } from '../support/test-service.js';

let service: TestService;

beforeAll(async () => {
  service = await startService();
});
afterAll(() => service?.close());

/** Requests without a key and reads the whole response: an unread one would keep the service from closing. */
async function get(path: string, headers: Record<string, string> = {}, method = 'GET') {
  const response = await fetch(service.url + path, { method, headers, redirect: 'manual' });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

async function scriptPaths(): Promise<string[]> {
  const { text } = await get('/docs');
  return [...text.matchAll(/<script src="([^"]+)"/g)].map(([, source = '']) => `/${source}`);
}

async function bundlePath(): Promise<string> {
  return (await scriptPaths()).find((path) => path.includes('scalar')) ?? '';
}

/** Directives of a Content-Security-Policy by name */
function policyOf(headers: Headers): Record<string, string> {
  const directives = headers.get('content-security-policy')?.split(';') ?? [];
  return Object.fromEntries(directives.map((directive) => directive.trim().split(/ (.*)/, 2)));
}

test('/openapi.yaml is the document of /openapi.json, for parsers of YAML 1.2 and of 1.1', async () => {
  const yaml = await get('/openapi.yaml');
  const json = await get('/openapi.json');
  const document = JSON.parse(json.text);
  expect(parse(yaml.text)).toEqual(document);
  expect(parse(yaml.text, { version: '1.1' })).toEqual(document);
  // Anchors and aliases are what some parsers reject, and not what a reader wants to look up.
  expect(yaml.text).not.toMatch(/[:-] [&*]\w/);
  expect(yaml.headers.get('content-type')).toBe('application/yaml');
  const own = ['content-type', 'content-length', 'date', 'x-request-id'];
  const shared = ({ headers }: { headers: Headers }) => [...headers].filter(([name]) => !own.includes(name));
  expect(shared(yaml)).toEqual(shared(json));
});

test('HEAD on either document responds like GET without a body', async () => {
  for (const path of ['/openapi.json', '/openapi.yaml']) {
    const whole = await get(path);
    const head = await get(path, {}, 'HEAD');
    expect([path, head.status, head.text]).toEqual([path, 200, '']);
    for (const name of ['content-type', 'content-length']) {
      expect([path, name, head.headers.get(name)]).toEqual([path, name, whole.headers.get(name)]);
    }
  }
});

test('the policy of the page allows scripts from, and calls to, this server only', async () => {
  const { status, headers } = await get('/docs');
  expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
  expect(policyOf(headers)).toEqual({
    'default-src': "'none'",
    'script-src': "'self'",
    'style-src': "'self' 'unsafe-inline'",
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

test('the page has no inline script, and every script it names is served without a key', async () => {
  const { text } = await get('/docs');
  expect(text).not.toMatch(/<script(?! src="docs\/)/);
  const paths = await scriptPaths();
  expect(paths.length).toBeGreaterThan(1);
  const modules = ['accessibility', 'blocks', 'guides', 'presentation', 'samples', 'search'].map(
    (name) => `/docs/${name}.js`,
  );
  for (const path of [...paths, ...modules]) {
    const { status, headers } = await get(path);
    expect([path, status]).toEqual([path, 200]);
    expect(headers.get('content-type')).toMatch(/^(?:text|application)\/javascript; charset=utf-8$/);
    expect(headers.get('x-content-type-options')).toBe('nosniff');
  }
});

test('the style sheets, the icon and the guides are served with their types', async () => {
  const types = {
    '/docs/theme.css': 'text/css; charset=utf-8',
    '/docs/page.css': 'text/css; charset=utf-8',
    '/docs/search.css': 'text/css; charset=utf-8',
    '/docs/icon.svg': 'image/svg+xml',
    '/docs/guides.json': 'application/json; charset=utf-8',
  };
  for (const [path, type] of Object.entries(types)) {
    const { status, headers, text } = await get(path);
    expect([path, status, headers.get('content-type')]).toEqual([path, 200, type]);
    expect(headers.get('cache-control')).toBe('no-cache');
    expect(text).not.toBe('');
  }
});

test('the guides are those of the repository, by file name', async () => {
  const guides = JSON.parse((await get('/docs/guides.json')).text) as { name: string; text: string }[];
  expect(guides.map(({ name }) => name)).toEqual(listGuides());
  for (const { name, text } of guides) expect(text).toBe(await readFile(join(GUIDES_FOLDER, name), 'utf8'));
});

test('the bundle has its version in its name and is cached forever; everything else is revalidated', async () => {
  const bundle = await bundlePath();
  expect(bundle).toMatch(/^\/docs\/scalar-\d+\.\d+\.\d+\.js$/);
  for (const path of ['/docs', ...(await scriptPaths())]) {
    const caching = path === bundle ? 'public, max-age=31536000, immutable' : 'no-cache';
    expect([path, (await get(path)).headers.get('cache-control')]).toEqual([path, caching]);
  }
});

test('a client that has the current version of a file gets a 304 without a body', async () => {
  for (const path of ['/docs', ...(await scriptPaths())]) {
    const etag = (await get(path)).headers.get('etag') ?? '';
    // Without a Cache-Control of its own, fetch turns a conditional request into one that bypasses caches.
    const revalidate = (known: string) => get(path, { 'if-none-match': known, 'cache-control': 'max-age=0' });
    for (const known of [etag, `"other", ${etag}`, etag.replace('W/', ''), '*']) {
      const { status, text, headers } = await revalidate(known);
      expect([path, known, status, text]).toEqual([path, known, 304, '']);
      expect(headers.get('etag')).toBe(etag);
    }
    expect((await revalidate('"other"')).status).toBe(200);
  }
});

test('files are compressed only for clients that accept gzip', async () => {
  const path = await bundlePath();
  const size = async (encodings: string) => {
    const { headers } = await get(path, { 'accept-encoding': encodings }, 'HEAD');
    expect(headers.get('vary')?.toLowerCase()).toContain('accept-encoding');
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

test('HEAD responds like GET without a body, and a trailing slash redirects to the page', async () => {
  for (const path of ['/docs', ...(await scriptPaths())]) {
    const head = await get(path, {}, 'HEAD');
    const whole = await get(path);
    expect([path, head.status, head.text]).toEqual([path, 200, '']);
    for (const name of [
      'etag',
      'content-type',
      'content-length',
      'cache-control',
      'content-security-policy',
    ]) {
      expect([path, name, head.headers.get(name)]).toEqual([path, name, whole.headers.get(name)]);
    }
  }
  for (const method of ['GET', 'HEAD']) {
    const slash = await get('/docs/', {}, method);
    expect(slash.status).toBe(308);
    expect(new URL(slash.headers.get('location') ?? '', `${service.url}/docs/`).pathname).toBe('/docs');
  }
});

test('the root leads to the page, also where a proxy serves it under a path of its own', async () => {
  for (const method of ['GET', 'HEAD']) {
    const { status, headers, text } = await get('/', { accept: 'text/html' }, method);
    expect([status, text]).toEqual([302, '']);
    const location = headers.get('location') ?? '';
    expect(new URL(location, `${service.url}/`).href).toBe(`${service.url}/docs`);
    expect(new URL(location, 'https://pets.example/store/').href).toBe('https://pets.example/store/docs');
  }
});

test('a path outside the protocols answers other methods with 405 and Allow', async () => {
  const files = ['/docs/page.css', await bundlePath()];
  for (const path of [
    '/',
    '/docs',
    '/docs/',
    '/openapi.json',
    '/openapi.yaml?x',
    '/client.tgz',
    '/metrics',
    '/health/live',
    ...files,
  ]) {
    for (const method of ['POST', 'DELETE', 'OPTIONS', 'PROPFIND']) {
      const { status, headers, text } = await get(path, {}, method);
      expect([path, method, status, headers.get('allow')]).toEqual([path, method, 405, 'GET, HEAD']);
      expect(JSON.parse(text).code).toBe('method_not_allowed');
    }
  }
  for (const path of ['/nope', '/docs/(', '/docs/:x', '/docs/*', '/%28'])
    expect([path, (await get(path, {}, 'POST')).status]).toEqual([path, 404]);
});

test('a path without a file is a 404 of the service, in JSON', async () => {
  const bundle = await bundlePath();
  for (const path of [
    '/docs/nope.js',
    '/docs/..%2fpackage.json',
    '/docs/%2e%2e/%2e%2e/package.json',
    '/docs/a/b',
    '/docs/__proto__',
    '/docs/page.html',
    `${bundle}.gz`,
    '/doc',
  ]) {
    const { status, headers, text } = await get(path);
    expect([path, status, headers.get('content-type')]).toEqual([path, 404, 'application/json']);
    expectErrorBody(JSON.parse(text), 'not_found');
  }
});

test('/client.tgz is the packed client, revalidated on each use and never compressed again', async () => {
  const packed = await readFile('dist/client.tgz');
  const whole = await fetch(`${service.url}/client.tgz`, { headers: { 'accept-encoding': 'gzip' } });
  expect(Buffer.from(await whole.arrayBuffer()).equals(packed)).toBe(true);
  expect([whole.status, whole.headers.get('content-type')]).toEqual([200, 'application/gzip']);
  expect(whole.headers.get('content-encoding')).toBeNull();
  expect(whole.headers.get('cache-control')).toBe('no-cache');
  const head = await get('/client.tgz', {}, 'HEAD');
  expect([head.status, head.headers.get('content-length')]).toEqual([200, `${packed.length}`]);
  const etag = whole.headers.get('etag') ?? '';
  const known = await get('/client.tgz', { 'if-none-match': etag, 'cache-control': 'max-age=0' });
  expect([known.status, known.text]).toEqual([304, '']);
});

test('/.well-known/api-catalog leads programs to every interface, what describes it, and its status', async () => {
  const { status, text, headers } = await get('/.well-known/api-catalog');
  expect([status, headers.get('content-type')]).toEqual([
    200,
    'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"',
  ]);
  const [catalog, ...interfaces] = JSON.parse(text).linkset;
  expect(catalog).toEqual({
    anchor: `${PUBLIC_URL}/.well-known/api-catalog`,
    item: [{ href: `${PUBLIC_URL}/v1` }, { href: `${PUBLIC_URL}/mcp` }],
  });
  expect(interfaces.map(({ anchor }: { anchor: string }) => anchor)).toEqual(
    catalog.item.map(({ href }: { href: string }) => href),
  );
  const [rest] = interfaces;
  expect(Object.keys(rest)).toEqual(['anchor', 'service-desc', 'service-doc', 'status']);
  const { anchor: _anchor, ...relations } = rest;
  for (const { href, type } of Object.values(relations).flat() as { href: string; type: string }[]) {
    expect(href.startsWith(PUBLIC_URL)).toBe(true);
    const linked = await get(href.slice(PUBLIC_URL.length));
    expect([href, linked.status]).toEqual([href, 200]);
    expect(linked.headers.get('content-type')).toContain(type);
  }
  const head = await get('/.well-known/api-catalog', {}, 'HEAD');
  expect([head.status, head.text, head.headers.get('link')]).toEqual([
    200,
    '',
    `<${PUBLIC_URL}/.well-known/api-catalog>; rel="api-catalog"`,
  ]);
});

test('with METRICS_PORT, where clients cannot ask for the status, the catalogue has none', async () => {
  const other = await startService({ metricsPort: 9 });
  const response = await fetch(`${other.url}/.well-known/api-catalog`);
  for (const each of (await response.json()).linkset) expect(each).not.toHaveProperty('status');
  await other.close();
});

test('each guide is served as Markdown, /changelog is that of the interface, and /llms.txt links all of them', async () => {
  const { text: index, headers } = await get('/llms.txt');
  expect(headers.get('content-type')).toBe('text/plain; charset=utf-8');
  for (const name of listGuides()) {
    expect(index).toContain(`](docs/${name})`);
    const guide = await get(`/docs/${name}`);
    expect(guide.headers.get('content-type')).toBe('text/markdown; charset=utf-8');
    expect(guide.text).toBe(await readFile(join(GUIDES_FOLDER, name), 'utf8'));
  }
  expect(index).not.toContain('undefined');
  const { version } = JSON.parse((await get('/openapi.json')).text).info;
  expect((await get('/changelog')).text).toContain(`## ${version}`);
});
