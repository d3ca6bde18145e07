import helmet, { type FastifyHelmetOptions } from '@fastify/helmet';
import Fastify, { type FastifyInstance } from 'fastify';

/** A year, in seconds. Sub-domains are not this service's to decide about. */
const HSTS = { maxAge: 365 * 24 * 60 * 60, includeSubDomains: false };

/** For answers that are data: nothing may be loaded or framed, should a browser ever show one as a page. */
const FOR_DATA = {
  contentSecurityPolicy: {
    useDefaults: false,
    directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] },
  },
  // Requests of the configured origins are CORS requests, which this policy does not concern (Fetch, section 3.7).
  crossOriginResourcePolicy: { policy: 'same-origin' },
  referrerPolicy: { policy: 'no-referrer' },
  xFrameOptions: { action: 'deny' },
  // Sent by the hook below, which knows whether the service is reached by https.
  strictTransportSecurity: false,
  // These concern documents, or browsers that are gone.
  crossOriginOpenerPolicy: false,
  originAgentCluster: false,
  xDnsPrefetchControl: false,
  xDownloadOptions: false,
  xPermittedCrossDomainPolicies: false,
  xXssProtection: false,
} satisfies FastifyHelmetOptions;

export interface SecurityOptions {
  /** Without a trailing slash; known once the service listens */
  readonly publicUrl: () => string;
}

/**
 * Gives every answer its security headers, refusals and failures included: first in the app, so that no other hook can
 * answer before. Helmet composes them once; put on each request, it would compose the same values again.
 */
export async function registerSecurity(app: FastifyInstance, { publicUrl }: SecurityOptions): Promise<void> {
  const composed = await composeHeaders(FOR_DATA);
  const transport = await composeHeaders({ ...FOR_DATA, strictTransportSecurity: HSTS });
  let headers: Record<string, string> | undefined;
  app.addHook('onRequest', (_request, reply, next) => {
    headers ??= publicUrl().startsWith('https:') ? transport : composed;
    reply.headers(headers);
    next();
  });
}

/** The headers that helmet sets for these options. */
export async function composeHeaders(options: FastifyHelmetOptions): Promise<Record<string, string>> {
  const probe = Fastify();
  await probe.register(helmet, options);
  const composed: Record<string, string> = {};
  probe.get('/', async (_request, reply) => {
    for (const [name, value] of Object.entries(reply.raw.getHeaders())) composed[name] = String(value);
    return '';
  });
  await probe.inject('/');
  await probe.close();
  return composed;
}
