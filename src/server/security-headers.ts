import type { FastifyInstance } from 'fastify';

/** For JSON responses: should a browser ever render one as a page, it may neither load anything nor be framed. */
const SECURITY_HEADERS = {
  // A page, a 404 or a 410 that a shared cache kept would reach others, and later. What may be kept says so itself.
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none';frame-ancestors 'none'",
  // Does not affect the configured origins: their requests are CORS requests, which this policy exempts (Fetch, 3.7).
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
};

/** One year. Subdomains are not ours to decide about. */
const STRICT_TRANSPORT = { 'strict-transport-security': 'max-age=31536000' };

export interface SecurityOptions {
  /** Without a trailing slash */
  readonly publicUrl: () => string;
}

/** Adds the headers to every response, including errors. Registered before any other hook can respond. */
export function registerSecurity(app: FastifyInstance, { publicUrl }: SecurityOptions): void {
  // Without a PUBLIC_URL the address is not known yet, but it is plain http.
  const isSecure = publicUrl().startsWith('https:');
  const headers = { ...SECURITY_HEADERS, ...(isSecure && STRICT_TRANSPORT) };
  app.addHook('onRequest', (_request, reply, next) => {
    reply.headers(headers);
    next();
  });
}
