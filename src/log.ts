import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type Logger, pino } from 'pino';
import type { Config } from './config.js';
import type { Metrics, RequestReport } from './http/metrics.js';

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

/** One JSON object per line on standard output; in development lines for people. */
export async function createLogger({
  appEnv,
  logLevel,
}: Pick<Config, 'appEnv' | 'logLevel'>): Promise<Logger> {
  if (appEnv !== 'development') return pino({ level: logLevel });
  const { default: pretty } = await import('pino-pretty');
  return pino({ level: logLevel }, pretty({ sync: true, singleLine: true, ignore: 'pid,hostname' }));
}

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
      const names = [...new Set(called)].filter((name) => known.has(name));
      const report: RequestReport = {
        operation: called.length > 1 && names.length > 0 ? 'batch' : (names[0] ?? 'unknown'),
        face: request.face ?? 'other',
        status: reply.raw.writableFinished ? reply.raw.statusCode : CLIENT_LEFT,
        seconds: reply.elapsedTime / 1000,
      };
      countRequest(report);
      logRequest(request, reply, { ...report, operation: names.join(',') });
    });
    next();
  });
}

/**
 * Learns the error code of an answer that tRPC has worded, which of a batch is the first one's; those that the error
 * handler words are known.
 */
export function readErrorCode(request: FastifyRequest, reply: FastifyReply, payload: unknown): void {
  if (reply.statusCode < 400 || request.errorCode !== null || !Buffer.isBuffer(payload)) return;
  const answers: { error?: { data: { error: { code: string } } } }[] = [
    JSON.parse(payload.toString()),
  ].flat();
  request.errorCode = answers.find(({ error }) => error !== undefined)?.error?.data.error.code ?? null;
}

function readCalled(request: FastifyRequest): string[] {
  const { operation = '' } = request.routeOptions.config;
  return (typeof operation === 'function' ? operation(request) : operation).split(',');
}

/** A failure of ours is a warning; why it failed has a line of its own. */
function logRequest(
  request: FastifyRequest,
  { elapsedTime }: FastifyReply,
  { operation, face, status }: RequestReport,
): void {
  const { isProbe = false } = request.routeOptions.config;
  const level = status >= 500 ? 'warn' : isProbe && status < 400 ? 'debug' : 'info';
  request.log[level](
    {
      keyId: request.apiKey?.id,
      face,
      operation: operation === '' ? undefined : operation,
      method: request.method,
      status,
      code: status === CLIENT_LEFT ? 'client_left' : (request.errorCode ?? undefined),
      durationMs: Math.round(elapsedTime * 1000) / 1000,
    },
    'request',
  );
}
