import { type Logger, pino } from 'pino';
import type { Config } from './config.js';

/**
 * Lines leave together: a write for each would cost a request more than its limit does. What was not written when the
 * process ends is written then; a process that is killed loses half a second of it at most.
 */
const BUFFERED = { sync: false, minLength: 8 * 1024, periodicFlush: 500 };

/** One JSON object per line on standard output; in development lines for people. */
export async function createLogger({
  appEnv,
  logLevel,
}: Pick<Config, 'appEnv' | 'logLevel'>): Promise<Logger> {
  const options = { level: logLevel, serializers: { err: describeError } };
  if (appEnv !== 'development') return pino(options, pino.destination(BUFFERED));
  const { default: pretty } = await import('pino-pretty');
  return pino(options, pretty({ sync: true, singleLine: true, ignore: 'pid,hostname' }));
}

/** An error without what PostgreSQL adds of the row that it is about, which is a client's. */
export function describeError(error: Error): object {
  const { detail, ...described } = pino.stdSerializers.err(error) as unknown as Record<string, unknown>;
  return described;
}
