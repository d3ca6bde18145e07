import { createHash } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { hasBody } from '../operations/list-operations.js';

/** Routes outside the two protocols ignore request bodies. */
export function ignoreBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));
}

/**
 * One parser for every media type, because admission has checked the media type before any body is read. The parser
 * only collects the bytes: if it failed, Fastify would close the connection.
 */
export function readBodyAs(app: FastifyInstance, read: (bytes: Uint8Array) => unknown): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, bytes, done) => done(null, bytes));
  app.addHook('preValidation', (request, _reply, next) => {
    const { body: bytes } = request;
    if (!Buffer.isBuffer(bytes)) return next();
    if (request.headers['idempotency-key'] !== undefined)
      request.bodyHash = createHash('sha256').update(bytes).digest();
    request.body = hasBody(request.method) ? read(bytes) : undefined;
    next();
  });
}
