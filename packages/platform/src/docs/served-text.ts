import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { FastifyInstance, onRequestHookHandler } from 'fastify';
import fresh from 'fresh';
import Negotiator from 'negotiator';
import { loadOnce } from '../load-once.js';

interface ServedText {
  readonly etag: string;
  readonly text: string;
  readonly compressed: Buffer;
}

/**
 * Serves a text that stays the same while the process runs, with an ETag, and compressed for clients that accept it.
 *
 * @param build called for the first request
 */
export function serveText(
  app: FastifyInstance,
  path: string,
  mediaType: string,
  build: () => Promise<string>,
  further: Readonly<Record<string, string>> = {},
): void {
  const read = loadOnce(async () => toServed(await build()));
  app.get(path, { onRequest: ignoreLongPreferences }, async (request, reply) => {
    const { etag, text, compressed } = await read();
    const headers = { etag, 'cache-control': 'no-cache', vary: 'accept-encoding' };
    reply.headers({ ...further, ...headers }).type(mediaType);
    if (fresh(request.headers, headers)) return reply.code(304).send();
    const encoding = new Negotiator(request).encoding(['gzip', 'identity']);
    if (encoding !== 'gzip') return reply.serializer(String).send(text);
    return reply.header('content-encoding', 'gzip').send(compressed);
  });
}

/**
 * The headers in which a client names the form that it prefers. A server may ignore them (RFC 9110, sections 12.5 and
 * 14.2).
 */
const PREFERENCES = ['accept', 'accept-encoding', 'range'] as const;
/** No client sends more. The libraries that read these headers would take up to 16 ms for 16 KB. */
const MAX_PREFERENCE_LENGTH = 1_024;

/** For routes that serve something in several forms. */
export const ignoreLongPreferences: onRequestHookHandler = ({ headers }, _reply, next) => {
  for (const name of PREFERENCES) {
    if (Number(headers[name]?.length) > MAX_PREFERENCE_LENGTH) delete headers[name];
  }
  next();
};

/** The ETag is weak, because the compressed bytes have the same one (RFC 9110, section 8.8.1). */
async function toServed(text: string): Promise<ServedText> {
  const hash = createHash('sha256').update(text).digest('base64url');
  return { etag: `W/"${hash}"`, text, compressed: await promisify(gzip)(text, { level: 9 }) };
}
