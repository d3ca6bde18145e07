import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import fastifyStatic from '@fastify/static';
import type { FastifyInstance } from 'fastify';
import Negotiator from 'negotiator';
import { loadOnce } from '../load-once.js';
import { renderPlainPage } from './plain-page.js';
import { ignoreLongPreferences, serveText } from './served-text.js';

/** Where `@animal-store/reference-page` writes the pages of a store. Each file has a gzipped copy. */
const PAGE_FOLDER = 'dist/reference-page/';
/** Where a store packs the clients of this release and of earlier ones, and names that of this one. */
const CLIENTS_FOLDER = 'dist/clients/';
const CLIENT_FILE = 'dist/client.json';
/** The bundle carries its version in its name, so its content never changes under that name. */
const VERSIONED_FILE = /scalar-\d[^/]*$/;
const CACHE_FOREVER = 'public, max-age=31536000, immutable';
/** Browsers keep a copy but revalidate it on each use; the response is usually a 304. */
const CACHE_AND_REVALIDATE = 'no-cache';

/** Parsers of YAML 1.1, which are common, would read an unquoted time as a date. Few of them expand aliases safely. */
const YAML_OPTIONS = { compat: 'yaml-1.1', aliasDuplicateObjects: false } as const;

/**
 * Only scripts from this server run, and only this server is called. Styles are the exception: Scalar adds its style
 * sheet as an element and sets `style` attributes, which no nonce or hash can allow.
 */
const PAGE_HEADERS = {
  'content-security-policy':
    "default-src 'none';script-src 'self';style-src 'self' 'unsafe-inline';img-src 'self' data:;" +
    "connect-src 'self';object-src 'none';base-uri 'none';form-action 'none';frame-ancestors 'none'",
  'x-dns-prefetch-control': 'off',
};

/** Statuses that conditional and range requests may get besides the file's (RFC 9110, sections 15.5.13 and 15.5.17). */
const FILE_STATUSES: readonly unknown[] = [412, 416];

/**
 * Serves the OpenAPI document and the reference page, which need no key and load nothing from other hosts. The page is the one
 * that the store has built, with guides and a changelog, or else shows what the document has.
 *
 * @param root the folder of the store
 * @param buildDocument called for the first request that needs it
 */
export async function registerDocs(
  app: FastifyInstance,
  root: URL,
  buildDocument: () => Promise<object>,
): Promise<void> {
  const readDocument = loadOnce(buildDocument);
  serveText(app, '/openapi.json', 'application/json; charset=utf-8', async () =>
    JSON.stringify(await readDocument()),
  );
  serveText(app, '/openapi.yaml', 'application/yaml', async () => {
    const { stringify } = await import('yaml');
    return stringify(await readDocument(), YAML_OPTIONS);
  });
  if (!hasOwnPage(root)) {
    const build = async () => renderPlainPage(await readDocument());
    serveText(app, '/docs', 'text/html; charset=utf-8', build, PAGE_HEADERS);
  }
  app.get('/', (_request, reply) => reply.redirect('docs'));
  app.get('/docs/', (_request, reply) => reply.redirect('../docs', 308));
  await app.register((scope) => serveFiles(scope, root));
}

async function serveFiles(app: FastifyInstance, root: URL): Promise<void> {
  app.addHook('onRequest', ignoreLongPreferences);
  const { errorHandler } = app;
  app.setErrorHandler((error: FileError, request, reply) => {
    const { statusCode, headers = {} } = error;
    if (!FILE_STATUSES.includes(statusCode)) return errorHandler(error, request, reply);
    return reply
      .code(statusCode)
      .headers(headers)
      .type('text/plain; charset=utf-8')
      .send(`${error.message}\n`);
  });
  if (hasOwnPage(root)) await servePage(app, root);
  const client = readCurrentClient(root);
  if (client !== undefined) await serveClients(app, root, client);
}

/** Serves the packed clients. */
async function serveClients(app: FastifyInstance, root: URL, current: string): Promise<void> {
  await app.register(fastifyStatic, {
    root: fileURLToPath(new URL(CLIENTS_FOLDER, root)),
    wildcard: false,
    decorateReply: !hasOwnPage(root),
    cacheControl: false,
    // A file's name has the hash of its bytes, so a lock file may hold its address and checksum.
    setHeaders: (reply) =>
      reply.headers({ 'cache-control': CACHE_FOREVER, 'content-type': 'application/gzip' }),
  });
  // Links are relative, because a proxy may serve the page under a path of its own.
  app.get('/client.tgz', (_request, reply) => reply.redirect(current));
}

async function servePage(app: FastifyInstance, root: URL): Promise<void> {
  await app.register(fastifyStatic, {
    root: fileURLToPath(new URL(PAGE_FOLDER, root)),
    prefix: '/docs/',
    // One route per file: every other path is an ordinary 404 of the router.
    wildcard: false,
    globIgnore: ['*.html', '*.gz', 'changelog-page.md', 'changelog.atom'],
    preCompressed: true,
    cacheControl: false,
    setHeaders: (reply, path) => {
      reply.header('cache-control', VERSIONED_FILE.test(path) ? CACHE_FOREVER : CACHE_AND_REVALIDATE);
    },
  });
  // Browsers get the page and programs the text. A client that accepts both alike gets the first.
  serveEither(app, '/docs', { 'text/html': 'page.html', 'text/markdown': 'index.md' });
  app.get('/llms.txt', (_request, reply) => reply.sendFile('llms.txt'));
  // A store may lack getKey, and its guides a changelog.
  if (hasOwnPage(root, 'key.html')) serveEither(app, '/docs/key', { 'text/html': 'key.html' });
  if (!hasOwnPage(root, 'changelog.atom')) return;
  serveEither(app, '/changelog', {
    'text/markdown': 'changelog-page.md',
    'text/html': 'changelog-page.html',
  });
  app.get('/changelog.atom', (_request, reply) => reply.sendFile('changelog.atom'));
}

/** Whether the store has built a page of its own, or another file of it */
export const hasOwnPage = (root: URL, file = 'page.html'): boolean =>
  existsSync(new URL(PAGE_FOLDER + file, root));

/** The name of the packed client that fits this service; undefined where the store packs none */
export function readCurrentClient(root: URL): string | undefined {
  const path = new URL(CLIENT_FILE, root);
  if (!existsSync(path)) return undefined;
  const { file }: { file: string } = JSON.parse(readFileSync(path, 'utf8'));
  return file;
}

type FileError = Error & { readonly statusCode: number; readonly headers?: Record<string, string> };

/** Serves the file that the client accepts (RFC 9110, section 12.5.1); the first one if it accepts none. */
function serveEither(app: FastifyInstance, path: string, files: Readonly<Record<string, string>>): void {
  const [first = ''] = Object.keys(files);
  app.get(path, (request, reply) => {
    const type = new Negotiator(request).mediaType(Object.keys(files)) ?? first;
    return reply.headers(PAGE_HEADERS).header('vary', 'accept').sendFile(String(files[type]));
  });
}
