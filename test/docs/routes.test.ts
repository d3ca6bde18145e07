import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { list } from '#operations-under-test';
import { expectErrorBody } from '../../packages/platform/test/support/expect-error-body.js';
import { GUIDES_FOLDER, listGuides } from '../guides/code-blocks.js';
import { PUBLIC_URL, startService, useService } from '../support/service.js';

const { service } = useService();

/** Requests without a key and reads the whole response: an unread one would keep the service from closing. */
async function get(path: string, headers: Record<string, string> = {}, method = 'GET') {
  const response = await fetch(service.url + path, { method, headers, redirect: 'manual' });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

async function scriptPaths(): Promise<string[]> {
  const { text } = await get('/docs');
  return [...text.matchAll(/<script[^>]* (?:src|data-bundle)="[^>]+>/g)].flatMap(([script]) =>
    [...script.matchAll(/"(docs\/[^"]+)"/g)].map(([, source = '']) => `/${source}`),
  );
}

async function bundlePath(): Promise<string> {
  return (await scriptPaths()).find((path) => path.includes('scalar')) ?? '';
}

async function currentClient(): Promise<string> {
  return JSON.parse(await readFile('dist/client.json', 'utf8')).file;
}

/** A guide of the repository as the service serves it: the one on TypeScript looks up the address of the client. */
async function readServedGuide(name: string): Promise<string> {
  const text = await readFile(join(GUIDES_FOLDER, name), 'utf8');
  return text.replaceAll(/\$\(curl [^)]+\/client\.tgz"\)/g, `$ANIMAL_STORE_URL/${await currentClient()}`);
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
  const own = ['content-type', 'content-length', 'date', 'etag', 'x-request-id'];
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
  const modules = ['accessibility', 'blocks', 'languages', 'presentation', 'samples', 'search'].map(
    (name) => `/docs/${name}.js`,
  );
  for (const path of [...paths, ...modules]) {
    const { status, headers } = await get(path);
    expect([path, status]).toEqual([path, 200]);
    expect(headers.get('content-type')).toMatch(/^(?:text|application)\/javascript; charset=utf-8$/);
    expect(headers.get('x-content-type-options')).toBe('nosniff');
  }
});

test('the page of a key has the same policy, and all that it names is served, also under a path of its own', async () => {
  const { headers, text } = await get('/docs/key');
  expect(headers.get('content-type')).toBe('text/html; charset=utf-8');
  expect(policyOf(headers)).toEqual(policyOf((await get('/docs')).headers));
  const files = [...text.matchAll(/(?:href|src)="([^"#]+)/g)].map(([, file = '']) => file);
  const modules = ['key-report.js', 'session-key.js', 'storage.js'];
  for (const file of [...files, ...modules]) {
    const { pathname } = new URL(file, 'https://service.example/store/docs/key');
    expect(pathname).toMatch(/^\/store\/docs/);
    expect([file, (await get(pathname.replace('/store', ''))).status]).toEqual([file, 200]);
  }
});

test('the style sheets, the icon and the guides are served with their types', async () => {
  const types = {
    '/docs/theme.css': 'text/css; charset=utf-8',
    '/docs/page.css': 'text/css; charset=utf-8',
    '/docs/search.css': 'text/css; charset=utf-8',
    '/docs/text.css': 'text/css; charset=utf-8',
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

test('the page has the words of every guide and operation before any script has run', async () => {
  const { text } = await get('/docs');
  const { paths } = JSON.parse((await get('/openapi.json')).text) as {
    paths: Record<string, Record<string, { summary: string; operationId: string }>>;
  };
  for (const name of listGuides()) {
    const guide = await readFile(join(GUIDES_FOLDER, name), 'utf8');
    for (const [, title = ''] of guide.matchAll(/^# (.+)$/gm)) {
      if (!title.includes('`')) expect(text).toContain(`>${title.replaceAll("'", '&#39;')}</h1>`);
      break;
    }
  }
  for (const [path, item] of Object.entries(paths)) {
    for (const [method, { summary }] of Object.entries(item)) {
      expect(text).toContain(`>${summary}</h3>`);
      expect(text).toContain(`<code>${method.toUpperCase()} /v1${path}</code>`);
    }
  }
  expect(text).not.toContain('<!-- text -->');
  for (const [, target = ''] of text.matchAll(/href="([^"#:]+)"/g))
    expect([target, (await get(`/${target}`)).status]).toEqual([target, 200]);
});

test('a client that prefers Markdown gets the page as Markdown, and so does one that follows the page to it', async () => {
  const asMarkdown = await get('/docs', { accept: 'text/markdown' });
  expect(asMarkdown.headers.get('content-type')).toBe('text/markdown; charset=utf-8');
  for (const name of listGuides()) {
    const [title = ''] = (await readFile(join(GUIDES_FOLDER, name), 'utf8')).split('\n', 1);
    expect(asMarkdown.text).toContain(`\n${title}\n`);
  }
  for (const [, target = ''] of asMarkdown.text.matchAll(/\]\(([^)#:]+)[#)]/g))
    expect([target, (await get(`/${target}`)).status]).toEqual([target, 200]);
  const { text: html } = await get('/docs', { accept: 'text/html, text/markdown;q=0.9' });
  const [, alternate] = /<link rel="alternate" type="text\/markdown" href="([^"]+)"/.exec(html) ?? [];
  expect((await get(`/${alternate}`)).text).toBe(asMarkdown.text);
  for (const accept of ['*/*', 'image/png', 'text/html,application/xhtml+xml,*/*;q=0.8'])
    expect((await get('/docs', { accept })).headers.get('content-type')).toMatch(/^text\/html/);
  for (const path of ['/docs', '/changelog'])
    expect((await get(path)).headers.get('vary')?.toLowerCase()).toContain('accept');
});

test('/changelog is a page for browsers and Markdown for others, without a dead link, and has a feed', async () => {
  const page = await get('/changelog', { accept: 'text/html,*/*;q=0.8' });
  expect(page.headers.get('content-type')).toMatch(/^text\/html/);
  const text = await get('/changelog');
  expect(text.headers.get('content-type')).toBe('text/markdown; charset=utf-8');
  const links = [...text.text.matchAll(/\]\(([^)]+)\)/g), ...page.text.matchAll(/href="([^"]+)"/g)];
  expect(links.length).toBeGreaterThan(3);
  for (const [, target = ''] of links)
    expect([target, (await get(new URL(target, 'http://x/changelog').pathname)).status]).toEqual([
      target,
      200,
    ]);

  const feed = await get('/changelog.atom');
  expect(feed.headers.get('content-type')).toBe('application/atom+xml');
  const { version } = JSON.parse((await get('/openapi.json')).text).info;
  const count = (pattern: RegExp) => feed.text.match(pattern)?.length;
  expect(count(/<entry>/g)).toBe(text.text.match(/^## /gm)?.length);
  // One more for the feed.
  expect(count(/<updated>\d{4}-\d{2}-\d{2}T00:00:00Z<\/updated>/g)).toBe((count(/<entry>/g) ?? 0) + 1);
  expect(feed.text).toContain(`<title>Interface ${version}</title>`);
});

test('the documents are compressed for those who accept it, and not sent again to those who have them', async () => {
  for (const path of ['/openapi.json', '/openapi.yaml']) {
    const whole = await get(path, { 'accept-encoding': 'identity' });
    expect(whole.headers.get('content-encoding')).toBeNull();
    const compressed = await get(path, { 'accept-encoding': 'br;q=0.1, gzip' });
    expect(compressed.headers.get('content-encoding')).toBe('gzip');
    expect(compressed.text).toBe(whole.text);
    expect(Number(compressed.headers.get('content-length'))).toBeLessThan(whole.text.length / 5);
    const etag = whole.headers.get('etag') ?? '';
    expect(compressed.headers.get('etag')).toBe(etag);
    for (const known of [etag, `"other", ${etag}`, etag.replace('W/', ''), '*']) {
      const again = await get(path, { 'if-none-match': known, 'cache-control': 'max-age=0' });
      expect([path, known, again.status, again.text]).toEqual([path, known, 304, '']);
    }
    expect((await get(path, { 'if-none-match': '"other"', 'cache-control': 'max-age=0' })).status).toBe(200);
  }
});

test('a file answers 412 and 416 as they are, so that a finished download can be resumed', async () => {
  const { file } = JSON.parse(await readFile('dist/client.json', 'utf8'));
  for (const path of [`/${file}`, '/docs', '/docs/page.css', await bundlePath()]) {
    const { headers } = await get(path, { 'accept-encoding': 'identity' }, 'HEAD');
    const size = Number(headers.get('content-length'));
    const beyond = await get(path, { range: `bytes=${size}-`, 'accept-encoding': 'identity' });
    expect([path, beyond.status, beyond.headers.get('content-range')]).toEqual([
      path,
      416,
      `bytes */${size}`,
    ]);
    const rest = await get(path, { range: `bytes=${size - 1}-`, 'accept-encoding': 'identity' });
    expect([path, rest.status]).toEqual([path, 206]);
    const changed = await get(path, { 'if-match': '"other"' });
    expect([path, changed.status, changed.headers.get('content-type')]).toEqual([
      path,
      412,
      'text/plain; charset=utf-8',
    ]);
  }
});

test('what a client prefers is read up to 1 KB, and anything longer is as if it had not been sent', async () => {
  const bundle = await bundlePath();
  const filler = (first: string, each: string, length: number) =>
    `${first}${each.repeat(Math.ceil((length - first.length) / each.length))}`.slice(0, length);
  for (const [path, name, value, other] of [
    ['/docs', 'accept', 'text/markdown', ', text/x'],
    ['/docs', 'accept-encoding', 'gzip', ', x'],
    [bundle, 'accept-encoding', 'gzip', ', x'],
    ['/openapi.json', 'accept-encoding', 'gzip', ', x'],
    ['/docs', 'range', 'bytes=0-0', ',0-0'],
    [bundle, 'range', 'bytes=0-0', ',0-0'],
  ] as const) {
    // fetch would add one.
    const none = { 'accept-encoding': 'identity' };
    const ask = async (headers: Record<string, string>) => {
      const response = await get(path, { ...none, ...headers }, 'HEAD');
      const { status, headers: sent } = response;
      return [status, sent.get('content-type'), sent.get('content-encoding'), sent.get('content-length')];
    };
    const [without, short, long] = [
      await ask({}),
      await ask({ [name]: filler(value, other, 1_024) }),
      await ask({ [name]: filler(value, other, 1_025) }),
    ];
    expect([path, name, short]).not.toEqual([path, name, without]);
    expect([path, name, long]).toEqual([path, name, without]);
  }
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
    expect(new URL(location, 'https://service.example/store/').href).toBe(
      'https://service.example/store/docs',
    );
  }
});

test('a path outside the protocols answers other methods with 405 and Allow', async () => {
  const files = ['/docs/page.css', await bundlePath()];
  for (const path of [
    '/',
    '/docs',
    '/docs/',
    '/docs/key',
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

test('/client.tgz leads to the packed client, also where a proxy serves it under a path of its own', async () => {
  for (const method of ['GET', 'HEAD']) {
    const { status, headers, text } = await get('/client.tgz', {}, method);
    const location = headers.get('location') ?? '';
    expect([status, text, location]).toEqual([302, '', await currentClient()]);
    expect(new URL(location, 'https://service.example/store/client.tgz').href).toBe(
      `https://service.example/store/${location}`,
    );
    // The next release leads elsewhere.
    expect(headers.get('cache-control')).toBe('no-store');
  }
});

test('the name of a packed client has a hash of its bytes, which are cached forever and never compressed again', async () => {
  const names = (await readdir('dist/clients')).sort();
  expect(names).toContain(await currentClient());
  for (const name of names) {
    const packed = await readFile(join('dist/clients', name));
    const whole = await fetch(`${service.url}/${name}`, { headers: { 'accept-encoding': 'gzip' } });
    const bytes = Buffer.from(await whole.arrayBuffer());
    expect(bytes.equals(packed)).toBe(true);
    const [, hash = ''] = /^client-\d+\.\d+\.\d+-([\da-f]{16})\.tgz$/.exec(name) ?? [];
    expect(createHash('sha256').update(bytes).digest('hex').slice(0, 16)).toBe(hash);
    expect([whole.status, whole.headers.get('content-type')]).toEqual([200, 'application/gzip']);
    expect(whole.headers.get('content-encoding')).toBeNull();
    expect(whole.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    const head = await get(`/${name}`, {}, 'HEAD');
    expect([head.status, head.headers.get('content-length')]).toEqual([200, `${packed.length}`]);
    const etag = whole.headers.get('etag') ?? '';
    const known = await get(`/${name}`, { 'if-none-match': etag, 'cache-control': 'max-age=0' });
    expect([known.status, known.text]).toEqual([304, '']);
  }
  expect((await get('/client-1.0.0-0000000000000000.tgz')).status).toBe(404);
});

test('what the service serves of the client names the address whose bytes never change', async () => {
  const name = await currentClient();
  const { text: guide } = await get('/docs/07-typescript.md');
  expect(guide).toContain(`npm install "$ANIMAL_STORE_URL/${name}" `);
  expect((await get('/llms.txt')).text).toContain(`](${name})`);
  expect(JSON.parse((await get('/docs/guides.json')).text).client).toBe(name);
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
    item: [{ href: `${PUBLIC_URL}${list.path}` }, { href: `${PUBLIC_URL}/mcp` }],
  });
  expect(interfaces.map(({ anchor }: { anchor: string }) => anchor)).toEqual(
    catalog.item.map(({ href }: { href: string }) => href),
  );
  // Without a key, and with GET: they are there.
  for (const { href } of catalog.item)
    expect([href, (await get(href.slice(PUBLIC_URL.length))).status]).toEqual([
      href,
      expect.toBeOneOf([401, 405]),
    ]);
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
    expect(guide.text).toBe(await readServedGuide(name));
  }
  expect(index).not.toContain('undefined');
  const { version } = JSON.parse((await get('/openapi.json')).text).info;
  expect((await get('/changelog')).text).toContain(`## ${version}`);
});
