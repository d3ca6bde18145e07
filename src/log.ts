import { type Logger, pino } from 'pino';
import type { Config } from './config.js';

/** One JSON object per line on standard output; in development lines for people. */
export async function createLogger({
  appEnv,
  logLevel,
}: Pick<Config, 'appEnv' | 'logLevel'>): Promise<Logger> {
  if (appEnv !== 'development') return pino({ level: logLevel });
  const { default: pretty } = await import('pino-pretty');
  return pino({ level: logLevel }, pretty({ sync: true, singleLine: true, ignore: 'pid,hostname' }));
}
