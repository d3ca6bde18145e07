import { isIP } from 'node:net';
import { availableParallelism } from 'node:os';
import { z } from 'zod';
import type { KeyPrefix } from './keys/format.js';

/** All that the environment decides. The README's table and .env.example describe each variable. */
export interface Config {
  readonly port: number;
  readonly host: string;
  readonly appEnv: 'development' | 'staging' | 'production';
  readonly keyPrefix: KeyPrefix;
  /** undefined: the embedded PostgreSQL in dataDir */
  readonly databaseUrl: string | undefined;
  /** none: limits live in memory; several: a cluster */
  readonly redisUrls: readonly string[];
  readonly dataDir: string;
  readonly workers: number;
  /** Without a trailing slash; undefined: http://HOST:PORT as it turns out when listening */
  readonly publicUrl: string | undefined;
  readonly stagingUrl: string | undefined;
  /** Addresses and CIDR blocks */
  readonly trustProxy: readonly string[];
  readonly corsOrigins: readonly string[];
  readonly anonymousPerMinute: number;
  readonly logLevel: (typeof LOG_LEVELS)[number];
}

/** Lists every bad variable in its message. */
export class ConfigError extends Error {}

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

const schema = z.object({
  PORT: wholeNumber(0, 65_535).default(3000),
  HOST: z.string().default('127.0.0.1'),
  APP_ENV: z
    .enum(['development', 'staging', 'production'], { error: 'must be development, staging or production' })
    .default('development'),
  DATABASE_URL: url(['postgresql:', 'postgres:']).optional(),
  REDIS_URL: list(url(['redis:', 'rediss:'])),
  DATA_DIR: z.string().default('.data'),
  WORKERS: z
    .literal('auto')
    .transform(() => availableParallelism())
    .or(wholeNumber(1, 256))
    .default(1),
  PUBLIC_URL: url(['http:', 'https:']).transform(withoutTrailingSlash).optional(),
  STAGING_URL: url(['http:', 'https:']).transform(withoutTrailingSlash).optional(),
  TRUST_PROXY: list(
    z.string().refine(isAddressOrBlock, 'must hold addresses or CIDR blocks, separated by commas'),
  ),
  CORS_ORIGINS: list(
    z.string().refine(isOrigin, 'must hold origins such as https://shop.example, separated by commas'),
  ),
  ANONYMOUS_PER_MINUTE: wholeNumber(1, 1_000_000_000).default(300),
  LOG_LEVEL: z.enum(LOG_LEVELS, { error: `must be one of ${LOG_LEVELS.join(', ')}` }).default('info'),
});

/**
 * Reads the configuration from environment variables; an empty one counts as not set.
 *
 * @throws ConfigError naming every bad variable, never a value (a URL may hold a password)
 */
export function readConfig(environment: Readonly<Record<string, string | undefined>>): Config {
  const set = Object.fromEntries(
    Object.entries(environment).filter(([, value]) => value !== undefined && value !== ''),
  );
  const parsed = schema.safeParse(set);
  const faults = [
    ...(parsed.error?.issues.map(({ path, message }) => `${String(path[0])} ${message}`) ?? []),
    ...findContradictions(set),
  ];
  if (!parsed.success || faults.length > 0) {
    throw new ConfigError(['The configuration is not usable:', ...new Set(faults)].join('\n  - '));
  }
  const { data } = parsed;
  return {
    port: data.PORT,
    host: data.HOST,
    appEnv: data.APP_ENV,
    keyPrefix: data.APP_ENV === 'production' ? 'as_live_' : 'as_test_',
    databaseUrl: data.DATABASE_URL,
    redisUrls: data.REDIS_URL,
    dataDir: data.DATA_DIR,
    workers: data.WORKERS,
    publicUrl: data.PUBLIC_URL,
    stagingUrl: data.STAGING_URL,
    trustProxy: data.TRUST_PROXY,
    corsOrigins: data.CORS_ORIGINS,
    anonymousPerMinute: data.ANONYMOUS_PER_MINUTE,
    logLevel: data.LOG_LEVEL,
  };
}

function findContradictions(set: Record<string, string | undefined>): string[] {
  const faults: string[] = [];
  if ((set.APP_ENV === 'staging' || set.APP_ENV === 'production') && set.DATABASE_URL === undefined) {
    faults.push(`DATABASE_URL must be set in ${set.APP_ENV}: the embedded PostgreSQL is for development`);
  }
  if (set.WORKERS !== undefined && set.WORKERS !== '1' && set.REDIS_URL === undefined) {
    faults.push('WORKERS above 1 needs REDIS_URL: limits in memory would not hold over several processes');
  }
  return faults;
}

function wholeNumber(min: number, max: number) {
  const error = `must be a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(/^\d+$/, { error, abort: true })
    .transform(Number)
    .pipe(z.number().min(min, { error }).max(max, { error }));
}

function url(protocols: readonly string[]) {
  const error = `must be a URL that starts with ${protocols.map((protocol) => `${protocol}//`).join(' or ')}`;
  return z.string().refine((text) => URL.canParse(text) && protocols.includes(new URL(text).protocol), error);
}

function list(item: z.ZodType<string, string>) {
  return z
    .string()
    .default('')
    .transform((text) =>
      text
        .split(',')
        .map((part) => part.trim())
        .filter((part) => part !== ''),
    )
    .pipe(z.array(item));
}

function withoutTrailingSlash(text: string): string {
  return text.replace(/\/+$/, '');
}

function isAddressOrBlock(text: string): boolean {
  const [address = '', prefix, ...rest] = text.split('/');
  const version = isIP(address);
  if (version === 0 || rest.length > 0) return false;
  return prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= (version === 4 ? 32 : 128));
}

function isOrigin(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol) && new URL(text).origin === text;
}
