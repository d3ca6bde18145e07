import { type DestinationStream, type Logger, pino } from 'pino';
import type PinoPretty from 'pino-pretty';
import type { Config } from './config.js';

/**
 * Lines are written in batches, because one write per line would cost a request more than the check of its limits does,
 * and a write hands them to another thread, which costs as much as several requests do. A normal exit flushes them; a
 * killed process loses at most the last half second.
 */
const BUFFERED = {
  sync: false,
  minLength: 32 * 1024,
  maxWrite: 64 * 1024,
  periodicFlush: 500,
  contentMode: 'buffer',
} as const;

/**
 * Logs one JSON object per line to standard output, or readable lines in development. What makes them readable is a
 * development dependency, which a production install does not have.
 */
export async function createLogger({
  appEnv,
  logLevel,
}: Pick<Config, 'appEnv' | 'logLevel'>): Promise<Logger> {
  const options = { level: logLevel, serializers: { err: describeError } };
  const pretty = appEnv === 'development' ? await importPretty() : undefined;
  if (pretty === undefined) return pino(options, bufferLines());
  return pino(
    options,
    pretty({
      sync: true,
      singleLine: true,
      translateTime: 'HH:MM:ss',
      ignore:
        'pid,hostname,reqId,route,path,address,keyId,protocol,operation,method,status,code,durationMs,userAgent',
      messageFormat: formatMessage,
    }),
  );
}

async function importPretty(): Promise<typeof PinoPretty | undefined> {
  try {
    return (await import('pino-pretty')).default;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    return undefined;
  }
}

/** In development a request is one short line: `GET /v1/pets 200 28 ms`. Other lines name the request they belong to. */
function formatMessage(line: Readonly<Record<string, unknown>>): string {
  const { msg, reqId, method, route, path = route, status, code, durationMs } = line;
  if (msg !== 'request') return reqId === undefined ? String(msg) : `${msg} (request ${reqId})`;
  return [method, path, status, code, `${Math.round(Number(durationMs))} ms`].filter(Boolean).join(' ');
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
