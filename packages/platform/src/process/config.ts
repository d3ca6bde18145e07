import { z } from 'zod';
import type { Identity } from '../definition/definition.js';
import { livePrefix, testPrefix } from '../keys/format.js';
import { OperatorError } from '../operator-errors/operator-error.js';
import { SHOWN_DAYS } from '../usage/store.js';
import { databaseUrl, findIgnored } from './database-url.js';
import { readSecretFiles, type Variables } from './secret-files.js';
import {
  baseUrl,
  isAddressOrBlock,
  isOrigin,
  list,
  redisUrls,
  splitList,
  wholeNumber,
} from './variable-types.js';

interface Runtime {
  readonly platform: NodeJS.Platform;
  readonly versions: { readonly node: string };
}

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

const DEFAULT_PORT = 3000;

const schema = z.object({
  PORT: wholeNumber(0, 65_535).default(DEFAULT_PORT),
  HOST: z.string().default('127.0.0.1'),
  METRICS_PORT: wholeNumber(0, 65_535).optional(),
  APP_ENV: z
    .enum(['development', 'staging', 'production'], { error: 'must be development, staging or production' })
    .default('development'),
  DATABASE_URL: databaseUrl().optional(),
  REDIS_URL: redisUrls(),
  DATA_DIR: z.string().default('.data'),
  REUSE_PORT: z.enum(['true', 'false'], { error: 'must be true or false' }).default('false'),
  PUBLIC_URL: baseUrl().optional(),
  STAGING_URL: baseUrl().optional(),
  CONTACT_URL: z
    .url({
      protocol: /^(https?|mailto)$/,
      error: 'must be a URL such as https://example.org/help or mailto:help@example.org',
    })
    .optional(),
  TRUST_PROXY: list(
    isAddressOrBlock,
    'must hold addresses or CIDR blocks without zones, separated by commas',
  ),
  CORS_ORIGINS: list(
    isOrigin,
    'must hold origins such as https://shop.example or capacitor://localhost, without a slash at the end, separated by commas',
  ),
  ANONYMOUS_PER_MINUTE: wholeNumber(1, 1_000_000_000).default(300),
  LIMITS_PER: z.enum(['key', 'owner'], { error: 'must be key or owner' }).default('key'),
  KEEP_ALIVE_SECONDS: wholeNumber(1, 86_400).default(72),
  USAGE_DAYS: wholeNumber(SHOWN_DAYS, 36_525).default(400),
  LOG_LEVEL: z.enum(LOG_LEVELS, { error: `must be one of ${LOG_LEVELS.join(', ')}` }).default('info'),
});

/** Everything the environment configures. docs/configuration.md and .env.example describe each variable. */
export type Config = Readonly<ReturnType<typeof toConfig>>;

/** Variables that hold passwords may be files instead, at the path in NAME_FILE. */
const SECRETS = ['DATABASE_URL', 'REDIS_URL'] as const;

/** The names of everything that the service and its commands read from their environment */
export const VARIABLES: ReadonlySet<string> = new Set([
  ...Object.keys(schema.shape),
  'KEYS_TOKEN',
  ...[...SECRETS, 'KEYS_TOKEN'].map((name) => `${name}_FILE`),
]);

/**
 * Reads the configuration from environment variables. An empty variable counts as unset.
 *
 * @param runtime what the process runs on, which decides what it can do
 * @param notices warnings about the environment, which may explain why something is invalid
 * @throws OperatorError naming every invalid variable, with its value unless that may contain a password
 */
export function readConfig(
  { keyPrefix }: Pick<Identity, 'keyPrefix'>,
  environment: Readonly<Record<string, string | undefined>>,
  runtime: Runtime = process,
  notices: readonly string[] = [],
): Config {
  const variables = Object.fromEntries(
    Object.entries(environment).filter(([, value]) => value !== undefined && value !== ''),
  );
  const { set, problems: unreadable } = readSecretFiles(variables, SECRETS);
  const parsed = schema.safeParse(set, { reportInput: true });
  const invalid = parsed.error?.issues.map(describeIssue) ?? [];
  const problems = [...unreadable, ...invalid, ...findConflicts(set, runtime)];
  if (!parsed.success || problems.length > 0) {
    throw new OperatorError(describeProblems([...new Set([...problems, ...notices])]));
  }
  return toConfig(keyPrefix, parsed.data, variables, findIgnored(set.DATABASE_URL ?? ''));
}

/**
 * Reads a secret again, because its file may hold a new password. Returns the previous secret if there is no file, or
 * nothing valid in it.
 */
function createReader<T>(
  variables: Variables,
  name: (typeof SECRETS)[number],
  type: z.ZodType<T>,
  initial: T,
): () => T {
  if (variables[`${name}_FILE`] === undefined) return () => initial;
  let last = initial;
  return () => {
    const { set, problems } = readSecretFiles(variables, [name]);
    const parsed = type.safeParse(set[name]);
    if (parsed.success && problems.length === 0) last = parsed.data;
    return last;
  };
}

function toConfig(
  keyPrefix: string,
  data: z.output<typeof schema>,
  variables: Variables,
  ignoredParameters: readonly string[],
) {
  const { DATABASE_URL, REDIS_URL } = schema.shape;
  const createPrefix = data.APP_ENV === 'production' ? livePrefix : testPrefix;
  const isOpenToLocalhost = data.APP_ENV === 'development' && data.CORS_ORIGINS.length === 0;
  return {
    port: data.PORT,
    host: data.HOST,
    /** undefined: /metrics and /health are on `port` */
    metricsPort: data.METRICS_PORT,
    appEnv: data.APP_ENV,
    keyPrefix: createPrefix(keyPrefix),
    /** undefined: the embedded PostgreSQL in dataDir */
    databaseUrl: data.DATABASE_URL,
    /** The parameters of DATABASE_URL that are left out, for the log */
    ignoredParameters,
    /** Empty: limits live in memory; several: a cluster. Sentinels are one URL. */
    redisUrls: data.REDIS_URL,
    /** These read both URLs again, for later connections */
    readDatabaseUrl: createReader(variables, 'DATABASE_URL', DATABASE_URL, data.DATABASE_URL),
    readRedisUrls: createReader(variables, 'REDIS_URL', REDIS_URL, data.REDIS_URL),
    dataDir: data.DATA_DIR,
    /** Several processes listen on `port`, and the kernel gives each its share of the connections */
    reusePort: data.REUSE_PORT === 'true',
    /** Without a trailing slash; undefined: http://HOST:PORT, with the port that the service listens on */
    publicUrl: data.PUBLIC_URL,
    stagingUrl: data.STAGING_URL,
    /** Where third parties can ask questions */
    contactUrl: data.CONTACT_URL,
    /** Addresses and CIDR blocks */
    trustProxy: data.TRUST_PROXY,
    /** The origins whose scripts may call the service; `localhost` stands for every origin on localhost */
    corsOrigins: isOpenToLocalhost ? ('localhost' as const) : data.CORS_ORIGINS,
    anonymousPerMinute: data.ANONYMOUS_PER_MINUTE,
    /** Whether the keys of an owner share their counts. A key without an owner has its own count. */
    limitsPer: data.LIMITS_PER,
    /** How long a connection stays open between requests */
    keepAliveSeconds: data.KEEP_ALIVE_SECONDS,
    /** For how many days the usage of keys is kept, by the clock of the database */
    usageDays: data.USAGE_DAYS,
    logLevel: data.LOG_LEVEL,
  };
}

/**
 * Hosts that mean all addresses of this machine, as URL spells them: servers listen on them, but clients cannot call them
 */
const ANY_ADDRESS = /^(?:0\.0\.0\.0|\[::(?:ffff:0:0)?\])$/;

/**
 * The URL of a service on this machine; an IPv6 host is put in brackets (RFC 3986, section 3.2.2). A service that listens
 * on all addresses gets the name of its machine.
 */
export function toLocalUrl(host: string, port: number): string {
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
  // An address with a zone is no URL.
  const isAny = URL.canParse(url) && ANY_ADDRESS.test(new URL(url).hostname);
  return isAny ? `http://localhost:${port}` : url;
}

/** One problem is one line; several are a list. */
function describeProblems(problems: readonly string[]): string {
  return `The configuration is invalid:${problems.length > 1 ? '\n  - ' : ' '}${problems.join('\n  - ')}`;
}

function describeIssue({ path, message, input }: z.core.$ZodIssue): string {
  const name = String(path[0]);
  // A user and password of any URL end with @, and a token may be in its query.
  const isSecret = /^(?:DATABASE|REDIS)_URL$/.test(name) || /[@?]/.test(String(input));
  return `${name} ${message}${isSecret ? '' : `, not ${JSON.stringify(String(input))}`}`;
}

/** Conflicts between variables, and variables that no longer exist. */
function* findConflicts(
  set: Readonly<Record<string, string | undefined>>,
  { platform, versions }: Runtime,
): Iterable<string> {
  // A problem with a file is reported once, and the missing URL is not.
  const { DATABASE_URL = set.DATABASE_URL_FILE, REDIS_URL = set.REDIS_URL_FILE } = set;
  if (/^(?:staging|production)$/.test(set.APP_ENV ?? '') && DATABASE_URL === undefined)
    yield `DATABASE_URL must be set in ${set.APP_ENV}: the embedded PostgreSQL is for development`;
  if (set.WORKERS !== undefined)
    yield 'WORKERS is gone: run several processes instead, with REUSE_PORT or as replicas behind a proxy (docs/operations.md of @animal-store/platform)';
  if (set.REUSE_PORT === 'true') {
    // 22.12 brought the option. The oldest supported version of 22 is 22.13, and 23, which lacked it at first, is refused.
    if (platform !== 'linux' || Number.parseInt(versions.node, 10) < 22)
      yield `REUSE_PORT needs Linux and Node.js 22.13 or later; this is ${versions.node} on ${platform}`;
    else if (DATABASE_URL === undefined || splitList(REDIS_URL ?? '').length === 0)
      yield 'REUSE_PORT needs DATABASE_URL and REDIS_URL: the processes share their data and their limits';
  }
  const port = Number(set.PORT ?? DEFAULT_PORT);
  // A 0 is a different free port each time.
  if (port !== 0 && Number(set.METRICS_PORT) === port)
    yield `METRICS_PORT must differ from PORT, which is ${port}: a port has one server`;
}
