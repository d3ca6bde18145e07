import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ApiError } from '../errors.js';
import { type Asset, loadPage, type Page } from './docs/page.js';
import { composeHeaders } from './security-headers.js';

export interface DocsOptions {
  /** The OpenAPI document */
  readonly document: () => object;
}

/** An asset's name holds its hash, so that what has the name never changes. */
const CACHE_FOR_GOOD = 'public, max-age=31536000, immutable';
/** Kept, but asked for again each time: the answer is mostly a 304. */
const CACHE_AND_ASK = 'no-cache';
const GZIP = /(?:^|,)\s*gzip\s*(?:;\s*q=(?:1|0?\.0*[1-9])[\d.]*\s*)?(?:,|$)/i;

/**
 * The reference page's policy. Only this server's own scripts run, and only this server is called. Styles are the
 * exception: the bundle adds its sheet as an element, and sets `style` attributes, which no nonce or hash can allow.
 */
const PAGE_POLICY = {
  defaultSrc: ["'none'"],
  scriptSrc: ["'self'"],
  styleSrc: ["'unsafe-inline'"],
  imgSrc: ["'self'", 'data:'],
  connectSrc: ["'self'"],
  objectSrc: ["'none'"],
  baseUri: ["'none'"],
  formAction: ["'none'"],
  frameAncestors: ["'none'"],
};

/**
 * What third parties read, without a key: the OpenAPI document and its reference page, which loads nothing from
 * elsewhere. Every link is relative, so that the page also works behind a proxy that adds a prefix to its path.
 */
export async function registerDocs(app: FastifyInstance, { document }: DocsOptions): Promise<void> {
  let built: object | undefined;
  app.get('/openapi.json', async () => {
    built ??= document();
    return built;
  });

  const pageHeaders = await composeHeaders({
    contentSecurityPolicy: { useDefaults: false, directives: PAGE_POLICY },
    // Browsers complain of it in the console where the service is reached by plain http.
    crossOriginOpenerPolicy: false,
    xFrameOptions: { action: 'deny' },
    strictTransportSecurity: false,
    originAgentCluster: false,
    xDownloadOptions: false,
    xPermittedCrossDomainPolicies: false,
    xXssProtection: false,
  });
  // The bundle is large: read when the first reader comes.
  let loading: Promise<Page> | undefined;
  const load = (): Promise<Page> => {
    loading ??= loadPage().catch((error) => {
      loading = undefined;
      throw error;
    });
    return loading;
  };

  app.get('/docs', async (request, reply) => {
    reply.headers(pageHeaders).header('cache-control', CACHE_AND_ASK);
    return sendAsset(request, reply, (await load()).html);
  });
  app.get('/docs/', async (_request, reply) => reply.redirect('../docs', 308));
  app.get<{ Params: { name: string } }>('/docs/:name', async (request, reply) => {
    const asset = (await load()).scripts.get(request.params.name);
    if (asset === undefined) throw new ApiError('not_found');
    reply.header('cache-control', CACHE_FOR_GOOD);
    return sendAsset(request, reply, asset);
  });
}

/** Answers 304 to who has it already (RFC 9110, section 13.1.2), and gzip to who understands it. */
async function sendAsset(request: FastifyRequest, reply: FastifyReply, asset: Asset): Promise<FastifyReply> {
  reply.headers({ etag: asset.etag, vary: 'Accept-Encoding' });
  if (hasVersion(request.headers['if-none-match'], asset.etag)) return reply.code(304).send();
  reply.type(asset.type);
  if (!GZIP.test(request.headers['accept-encoding']?.toString() ?? '')) return reply.send(asset.bytes);
  return reply.header('content-encoding', 'gzip').send(await asset.gzip());
}

/** Whether If-None-Match names the version, by the weak comparison that it asks for. */
function hasVersion(header: string | undefined, etag: string): boolean {
  const tags = header?.split(',').map((tag) => tag.trim().replace(/^W\//, '')) ?? [];
  return tags.includes('*') || tags.includes(etag.replace(/^W\//, ''));
}
