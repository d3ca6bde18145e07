import { type Logger, pino } from 'pino';
import type PinoPretty from 'pino-pretty';
import { TRPC_PREFIX } from '../contract/protocol.js';
import type { Identity } from '../definition/definition.js';
import { createKeySearch } from '../keys/format.js';
import type { Config } from './config.js';
import { type LogDestination, openLogDestination } from './log-destination.js';

/**
 * Lines are written in batches. One write per line would cost a request more than the check of its limits, and handing
 * lines to another thread costs as much as several requests. An exit writes the waiting lines; a killed process loses at
 * most the lines of the last FLUSH_INTERVAL_MS.
 */
const BATCH_BYTES = 32 * 1024;

const PRETTY: PinoPretty.PrettyOptions = {
  singleLine: true,
  translateTime: 'HH:MM:ss',
  ignore:
    'pid,hostname,reqId,route,path,address,keyId,keyName,protocol,operation,method,status,code,rehearsed,durationMs,userAgent',
  messageFormat: formatMessage,
};

/** The log of a process, and what else it writes to standard output. */
export interface ProcessLog extends Pick<LogDestination, 'close' | 'lostLines'> {
  readonly log: Logger;
  /** Writes a text as it is, after the lines before it. */
  print(text: string): void;
}

/**
 * Logs one JSON object per line to standard output, or readable lines in development. The formatter is a development
 * dependency, which a production install does not have.
 */
export async function createLogger(
  { keyPrefix, metricsPrefix }: Pick<Identity, 'keyPrefix' | 'metricsPrefix'>,
  { appEnv, logLevel }: Pick<Config, 'appEnv' | 'logLevel'>,
): Promise<ProcessLog> {
  const { redactKeys } = createKeySearch(keyPrefix);
  const pretty = appEnv === 'development' ? await importPretty() : undefined;
  const { write, flush, close, lostLines } = openLogDestination({
    metricsPrefix,
    minLength: pretty === undefined ? BATCH_BYTES : 0,
    onRecovery: (details) => log.warn(details, 'the log is written again: some lines were lost'),
  });
  const format = pretty?.(PRETTY) ?? String;
  // A client's text may be anywhere in a line, such as in the message of an error. A key in it must not reach the log.
  const stream = { write: (line: string) => write(format(redactKeys(line))), flush };
  const log = pino({ level: logLevel, serializers: { err: describeError } }, stream);
  return { log, print: write, close, lostLines };
}

async function importPretty(): Promise<typeof PinoPretty.prettyFactory | undefined> {
  try {
    return (await import('pino-pretty')).prettyFactory;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    return undefined;
  }
}

/**
 * In development a request is one short line: `GET /v1/pets 200 28 ms`, `GET /trpc/listPets,getKey 200 4 ms`. Other lines
 * name the request that they belong to, or the key that they are about.
 */
export function formatMessage(line: Readonly<Record<string, unknown>>): string {
  const { msg, reqId, keyId, method, protocol, operation, route, status, code, rehearsed, durationMs } = line;
  if (msg !== 'request') {
    const subject = reqId === undefined ? keyId && `key ${keyId}` : `request ${reqId}`;
    return subject === undefined ? String(msg) : `${msg} (${subject})`;
  }
  const called = protocol === 'trpc' && operation !== undefined ? `${TRPC_PREFIX}/${operation}` : route;
  const mark = rehearsed === true && '(rehearsed)';
  const parts = [method, line.path ?? called, status, code, mark, `${Math.round(Number(durationMs))} ms`];
  return parts.filter(Boolean).join(' ');
}

/** Leaves out PostgreSQL's `detail`, which quotes the affected row and thus the client's data. */
export function describeError(error: Error): object {
  const { detail, ...described } = pino.stdSerializers.err(error) as unknown as Record<string, unknown>;
  return described;
}
