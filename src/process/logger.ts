import { type DestinationStream, type Logger, pino } from 'pino';
import type { Config } from './config.js';

/**
 * Lines are written in batches, because one write per line would cost a request more than the check of its limits does.
 * A normal exit flushes them; a killed process loses at most the last half second.
 */
const BUFFERED = { sync: false, minLength: 8 * 1024, periodicFlush: 500, contentMode: 'buffer' } as const;

/** Logs one JSON object per line to standard output, or readable lines in development. */
export async function createLogger({
  appEnv,
  logLevel,
}: Pick<Config, 'appEnv' | 'logLevel'>): Promise<Logger> {
  const options = { level: logLevel, serializers: { err: describeError } };
  if (appEnv !== 'development') return pino(options, bufferLines());
  const { default: pretty } = await import('pino-pretty');
  return pino(options, pretty({ sync: true, singleLine: true, ignore: 'pid,hostname' }));
}

/** Collects lines as bytes. As text, the destination would copy all that it holds for each further line. */
function bufferLines(): DestinationStream {
  const destination = pino.destination(BUFFERED);
  const write = destination.write.bind(destination);
  // Its types only know text.
  destination.write = (line) => write(Buffer.from(line) as never);
  return destination;
}

/** Leaves out PostgreSQL's `detail`, which quotes the affected row and thus the client's data. */
export function describeError(error: Error): object {
  const { detail, ...described } = pino.stdSerializers.err(error) as unknown as Record<string, unknown>;
  return described;
}
