import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Metrics, RequestReport } from './metrics.js';

declare module 'fastify' {
  interface FastifyRequest {
    /** That of the answer's Error object, for the log */
    errorCode: string | null;
    /** The face that was called; none outside of them */
    face?: 'rest' | 'rpc';
  }
}

/** What nginx writes for a client that left before its answer: no status was sent then. */
const CLIENT_LEFT = 499;

/**
 * Tells the log and the metrics of each request once, when its answer is sent or its client has left. Operations are
 * named as the router does; names that it does not know are left out, for they are the client's.
 */
export function reportRequests(
  app: FastifyInstance,
  operations: readonly string[],
  { countRequest }: Pick<Metrics, 'countRequest'>,
): void {
  const known = new Set(operations);
  app.decorateRequest('errorCode', null);
  app.addHook('onRequest', (request, reply, next) => {
    // Fastify's onResponse hook does not run when the client leaves; a response closes in every case, and once.
    reply.raw.once('close', () => {
      const called = readCalled(request);
      const names = called.filter((name, index) => known.has(name) && called.indexOf(name) === index);
      const report: RequestReport = {
        operation: called.length > 1 && names.length > 0 ? 'batch' : (names[0] ?? 'unknown'),
        face: request.face ?? 'other',
        status: reply.raw.writableFinished ? reply.raw.statusCode : CLIENT_LEFT,
        seconds: reply.elapsedTime / 1000,
      };
      countRequest(report);
      logRequest(request, report, names);
    });
    next();
  });
}

function readCalled(request: FastifyRequest): readonly string[] {
  const { operation } = request.routeOptions.config;
  if (operation === undefined) return [];
  return typeof operation === 'string' ? [operation] : operation(request);
}

/** A failure of ours is a warning; why it failed has a line of its own. */
function logRequest(
  request: FastifyRequest,
  { face, status, seconds }: RequestReport,
  names: readonly string[],
): void {
  const { isProbe = false } = request.routeOptions.config;
  const level = status >= 500 ? 'warn' : isProbe && status < 400 ? 'debug' : 'info';
  request.log[level](
    {
      reqId: request.id,
      keyId: request.apiKey?.id,
      face,
      operation: names.length > 0 ? names.join(',') : undefined,
      method: request.method,
      status,
      code: status === CLIENT_LEFT ? 'client_left' : (request.errorCode ?? undefined),
      durationMs: Math.round(seconds * 1_000_000) / 1000,
    },
    'request',
  );
}
