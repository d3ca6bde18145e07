import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createTemporaryFolder } from '@animal-store/platform/testing';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { definition } from '#operations-under-test';
import { OperatorError } from '../../src/operator-errors/operator-error.js';
import { readConfig, toLocalUrl, VARIABLES } from '../../src/process/config.js';

/** Reads variables as Node.js 24 on Linux does, unless other versions and platforms are given. */
const readWith = (
  environment: Record<string, string>,
  node = '24.0.0',
  platform: NodeJS.Platform = 'linux',
) => readConfig(definition.identity, environment, { platform, versions: { node } });

test('an empty environment yields the documented defaults', () => {
  expect(readConfig(definition.identity, { PATH: '/bin', PORT: '' })).toEqual({
    port: 3000,
    host: '127.0.0.1',
    metricsPort: undefined,
    appEnv: 'development',
    keyPrefix: 'by_test_',
    databaseUrl: undefined,
    ignoredParameters: [],
    redisUrls: [],
    readDatabaseUrl: expect.any(Function),
    readRedisUrls: expect.any(Function),
    dataDir: '.data',
    reusePort: false,
    publicUrl: undefined,
    stagingUrl: undefined,
    trustProxy: [],
    corsOrigins: 'localhost',
    anonymousPerMinute: 300,
    limitsPer: 'key',
    keepAliveSeconds: 72,
    usageDays: 400,
    logLevel: 'info',
  });
});

test('every variable is read', () => {
  const config = readWith({
    PORT: '8080',
    HOST: '::',
    METRICS_PORT: '9464',
    APP_ENV: 'production',
    DATABASE_URL: 'postgresql://user:secret@db/store',
    REDIS_URL: 'redis://a:6379, rediss://b:6380',
    DATA_DIR: '/var/lib/store',
    REUSE_PORT: 'true',
    PUBLIC_URL: 'https://service.example/',
    STAGING_URL: 'https://staging.service.example',
    TRUST_PROXY: '10.0.0.0/8, ::1',
    CORS_ORIGINS: 'https://shop.example,http://localhost:5173',
    ANONYMOUS_PER_MINUTE: '60',
    LIMITS_PER: 'owner',
    KEEP_ALIVE_SECONDS: '620',
    USAGE_DAYS: '800',
    LOG_LEVEL: 'debug',
  });
  expect(config).toEqual({
    port: 8080,
    host: '::',
    metricsPort: 9464,
    appEnv: 'production',
    keyPrefix: 'by_live_',
    databaseUrl: 'postgresql://user:secret@db/store',
    ignoredParameters: [],
    redisUrls: ['redis://a:6379', 'rediss://b:6380'],
    readDatabaseUrl: expect.any(Function),
    readRedisUrls: expect.any(Function),
    dataDir: '/var/lib/store',
    reusePort: true,
    publicUrl: 'https://service.example',
    stagingUrl: 'https://staging.service.example',
    trustProxy: ['10.0.0.0/8', '::1'],
    corsOrigins: ['https://shop.example', 'http://localhost:5173'],
    anonymousPerMinute: 60,
    limitsPer: 'owner',
    keepAliveSeconds: 620,
    usageDays: 800,
    logLevel: 'debug',
  });
});

test('only production issues live keys', () => {
  const DATABASE_URL = 'postgres://db/store';
  expect(readConfig(definition.identity, { APP_ENV: 'staging', DATABASE_URL }).keyPrefix).toBe('by_test_');
  expect(readConfig(definition.identity, { APP_ENV: 'production', DATABASE_URL }).keyPrefix).toBe('by_live_');
});

test.each([
  'postgresql:///store?host=/var/run/postgresql',
  'postgresql://user@/store?host=/run/postgresql',
  'postgresql://user:a,b@/store?host=/var/run/postgresql',
  'postgresql://user@%2Fvar%2Frun%2Fpostgresql/store',
  'postgresql://user:a,b@db:5433/store?sslmode=verify-full&sslrootcert=/etc/ssl/a,b.pem',
])('DATABASE_URL may be %s', (DATABASE_URL) => {
  expect(readConfig(definition.identity, { DATABASE_URL }).databaseUrl).toBe(DATABASE_URL);
});

test.each(['redis://a', 'redis://a/', 'redis://a/15', 'rediss://u:p@a:6380?db=2&family=6'])(
  'REDIS_URL may be %s',
  (REDIS_URL) => {
    expect(readConfig(definition.identity, { REDIS_URL }).redisUrls).toEqual([REDIS_URL]);
  },
);

test('REDIS_URL may name sentinels, several in one URL', () => {
  const url = 'rediss+sentinel://user:pass@a:26379,b,[::1]:5000/name?db=2';
  expect(readConfig(definition.identity, { REDIS_URL: ` ${url} ` }).redisUrls).toEqual([url]);
});

test.each([
  ['redis+sentinel://a,b', /must end with the name of the primary/],
  ['redis+sentinel://a:x/name', /must have host:port,host:port for the sentinels/],
  [
    'redis+sentinel://a/name?hunter2=1',
    /the parameters sentinelUsername, sentinelPassword, db and no others/,
  ],
])('REDIS_URL=%s: the message says what is wrong', (REDIS_URL, message) => {
  expect(() => readConfig(definition.identity, { REDIS_URL })).toThrow(message);
  expect(() => readConfig(definition.identity, { REDIS_URL })).not.toThrow(/hunter2/);
});

test.each([
  ['PORT', ['-1', '65536', '3e3', 'http', ' 80']],
  ['METRICS_PORT', ['-1', '65536', 'metrics']],
  ['APP_ENV', ['prod', 'Production']],
  ['DATABASE_URL', ['mysql://db', 'db:5432', 'not a url']],
  [
    'REDIS_URL',
    [
      'http://a',
      'redis://a,b',
      'redis://a/abc',
      'redis://a/1/2',
      'redis://a/-1',
      'redis://a?db=abc',
      'redis://a?password=x',
      'redis://a/1,redis://b/1',
      'redis+sentinel://a:26379',
      'redis+sentinel://a:26379/',
      'redis+sentinel://a:26379/two/names',
      'redis+sentinel:///name',
      'redis+sentinel://a,,b/name',
      'redis+sentinel://a:port/name',
      'redis+sentinel://a:65536/name',
      'redis+sentinel://user:100%@a/name',
      'redis+sentinel://a/name?password=x',
      'redis+sentinel://a/name?db=first',
      'redis+sentinel://a/name,redis://b',
      'redis://b,redis+sentinel://a/name',
    ],
  ],
  ['REUSE_PORT', ['1', 'yes', 'TRUE']],
  [
    'PUBLIC_URL',
    [
      'service.example',
      'ftp://service.example',
      'https://service.example/?a=b',
      'https://service.example/#x',
      'https://u:p@service.example',
      'https://service.example/v1/',
    ],
  ],
  ['STAGING_URL', ['//x']],
  ['CONTACT_URL', ['help@example.org', '/help', 'javascript:alert(1)']],
  [
    'TRUST_PROXY',
    [
      '10.0.0.0/33',
      'proxy',
      '10.0.0',
      '::1/129',
      '1.2.3.4/x',
      '0.0.0.0/0',
      '::/0',
      'fe80::1%eth0',
      'fe80::%eth0/64',
    ],
  ],
  [
    'CORS_ORIGINS',
    [
      ...['*', 'shop.example', 'https://shop.example/', 'https://shop.example/path', 'null'],
      ...['capacitor://', 'capacitor://localhost/', 'chrome-extension://*', 'app', 'file://', 'data:x'],
    ],
  ],
  ['ANONYMOUS_PER_MINUTE', ['0', '-1', 'x']],
  ['KEEP_ALIVE_SECONDS', ['0', '86401', '10 min']],
  ['USAGE_DAYS', ['0', '29', '1e3', '36526']],
  ['LOG_LEVEL', ['loud', 'INFO']],
])('an invalid %s is reported by name', (name, values) => {
  for (const value of values)
    expect(() => readConfig(definition.identity, { [name]: value })).toThrow(new RegExp(`[:-] ${name} `));
});

test('one message lists every invalid variable with its value', () => {
  const read = () =>
    readConfig(definition.identity, {
      PORT: '99999',
      LOG_LEVEL: 'y\nz',
      ANONYMOUS_PER_MINUTE: '-1',
      TRUST_PROXY: '::1,a',
    });
  expect(read).toThrow(OperatorError);
  expect(read).toThrow(/- PORT [^\n]*, not "99999"\n/);
  expect(read).toThrow(/- LOG_LEVEL [^\n]*, not "y\\nz"/);
  expect(read).toThrow(/- ANONYMOUS_PER_MINUTE must be a whole number from 1 to 1000000000, not "-1"/);
  expect(read).toThrow(/- TRUST_PROXY [^\n]*, not "a"\n/);
});

test('a message never contains a value that may hold a password', () => {
  const url = 'mysql://user:hunter2@db';
  for (const name of ['DATABASE_URL', 'REDIS_URL', 'PUBLIC_URL', 'STAGING_URL', 'CORS_ORIGINS', 'PORT']) {
    for (const value of [url, `${url}?a`, 'https://db/?token=hunter2']) {
      expect(() => readConfig(definition.identity, { [name]: value })).toThrow(new RegExp(`[:-] ${name} `));
      expect(() => readConfig(definition.identity, { [name]: value })).not.toThrow(/hunter2/);
    }
  }
  expect(() => readConfig(definition.identity, { DATABASE_URL: 'hunter2' })).not.toThrow(/hunter2/);
});

test.each([
  'postgresql://a,b/store',
  'postgresql://user:hunter2@a:5432,b:5433/store',
  'postgresql:///store?host=a,b',
  'postgresql://user@localhost/store?application_name=x&host=a%2Cb',
  'postgresql://user:hunter2#x@db:5432/store',
  'postgresql://user:hunter2/x@db:5432/store',
  'postgresql://user:hunter2?x@db:5432/store',
  'postgresql://user:12#hunter2@db:5432/store',
  'postgresql://user:12/hunter2@db:5432/store',
  'mysql://user:hunter2@db/store',
])('DATABASE_URL=%s is refused: the message says what it must be, and not what it is', (DATABASE_URL) => {
  expect(() => readConfig(definition.identity, { DATABASE_URL })).toThrow(
    /^[^\n]* DATABASE_URL must be [^\n]* postgresql:[^\n]* one host[^\n]* percent-encoded: [^\n]*$/,
  );
  expect(() => readConfig(definition.identity, { DATABASE_URL })).not.toThrow(/hunter2|user|12/);
});

test.each([
  [
    'sslmod=verify-full',
    /has the parameter sslmod, which the service does not know: it takes schema, sslmode, /,
  ],
  ['tls=true', /parameter tls, .* \(write sslmode=verify-full for TLS\)/],
  ['ssl=true', /parameter ssl, .*sslmode=verify-full/],
  ['SSLMODE=verify-full', /parameter SSLMODE, which/],
  ['statement_timeout=5', /parameter statement_timeout, .*timeouts of its own/],
  ['target_session_attrs=read-write', /parameter target_session_attrs/],
  ['sslcrl=/crl.pem', /parameter sslcrl/],
  ['channel_binding=require', /channel_binding=require, .*write sslmode=verify-full/],
  ['channel_binding=require&sslmode=no-verify', /channel_binding=require, .*write sslmode=verify-full/],
  ['channel_binding=require&sslmode=require&uselibpqcompat=true', /channel_binding=require/],
  ['sslrootcert=system&sslmode=require', /sslrootcert=system, which needs sslmode=verify-full/],
  ['__proto__=x', /parameter __proto__/],
  ['sslmode=', /parameter sslmode with a value/],
  ['sslmode=verifyfull', /parameter sslmode with a value/],
  ['sslmode=disable&sslmode=verify-full', /parameter sslmode twice/],
  ['connection_limit=3', /connection_limit below 4/],
  ['connection_limit=-1', /parameter connection_limit with a value/],
  ['connection_limit=012', /parameter connection_limit with a value/],
  ['schema=', /parameter schema with a value/],
  ['schema=a%22b', /parameter schema with a value/],
  ['hunter2@db/store', /has a parameter, which the service does not know/],
])(
  'DATABASE_URL with ?%s is refused: the message says which parameter, and never a value',
  (parameters, message) => {
    const refuse = () =>
      readConfig(definition.identity, { DATABASE_URL: `postgresql://user:hunter2@db/store?${parameters}` });
    expect(refuse).toThrow(message);
    expect(refuse).not.toThrow(/hunter2|verifyfull|a.b/);
  },
);

test('every parameter of DATABASE_URL that is taken is in the documents, and no other is', () => {
  const parameters = {
    ...{
      schema: 'Tenant 2',
      sslmode: 'verify-full',
      sslrootcert: '/ca.pem',
      sslcert: '/cert.pem',
      sslkey: '/key.pem',
    },
    ...{
      sslnegotiation: 'direct',
      uselibpqcompat: 'false',
      host: '/run',
      port: '5433',
      user: 'u',
      password: 'p',
    },
    ...{ application_name: 'shop', options: '-c geqo=off', connection_limit: '8' },
  };
  const DATABASE_URL = `postgresql:///store?${new URLSearchParams(parameters)}`;
  expect(readConfig(definition.identity, { DATABASE_URL }).databaseUrl).toBe(DATABASE_URL);
  const documented = readFileSync('docs/configuration.md', 'utf8');
  for (const name of Object.keys(parameters)) expect(documented).toContain(`\`${name}`);
  const [, known = ''] = /: it takes (.*)$/.exec(String(readRefusal())) ?? [];
  expect(known.split(', ').sort()).toEqual(Object.keys(parameters).sort());
});

function readRefusal(): unknown {
  try {
    return readConfig(definition.identity, { DATABASE_URL: 'postgresql://db/store?unknown=1' });
  } catch (error) {
    return error;
  }
}

/** As the providers give them, and what pg gets of their parameters */
const PROVIDERS: Readonly<Record<string, readonly [url: string, parameters: string, ignored?: string[]]>> = {
  Neon: [
    'postgresql://alex:hunter2@ep-cool-darkness-a1b2c3d4-pooler.us-east-2.aws.neon.tech/neondb?sslmode=require&channel_binding=require',
    'sslmode=require',
    ['channel_binding'],
  ],
  'Supabase, its pooler': [
    'postgresql://postgres.apbkobhfnmcqqzqeeqss:hunter2@aws-0-eu-west-1.pooler.supabase.com:6543/postgres?pgbouncer=true&connection_limit=8',
    'connection_limit=8',
    ['pgbouncer'],
  ],
  'Vercel, for Prisma': [
    'postgres://default:hunter2@ep-long-sun-12345678-pooler.us-east-1.aws.neon.tech/verceldb?pgbouncer=true&connect_timeout=15&sslmode=require',
    'sslmode=require',
    ['pgbouncer', 'connect_timeout'],
  ],
  'Vercel, of Supabase': [
    'postgres://postgres.abc:hunter2@aws-0-us-east-1.pooler.supabase.com:6543/postgres?sslmode=require&supa=base-pooler.x',
    'sslmode=require',
    ['supa'],
  ],
  Heroku: ['postgres://u8f:hunter2@ec2-18-2-3-4.compute-1.amazonaws.com:5432/d6k7', ''],
  'Cloud SQL': [
    'postgresql://store:hunter2@/store?host=/cloudsql/project:europe-west1:instance',
    'host=/cloudsql/project:europe-west1:instance',
  ],
  Azure: [
    'postgres://store%40server:hunter2@server.postgres.database.azure.com:5432/postgres?sslmode=require',
    'sslmode=require',
  ],
  RDS: [
    'postgresql://store:hunter2@store.abc.eu-west-1.rds.amazonaws.com:5432/store?sslmode=verify-full&sslrootcert=/certs/global-bundle.pem',
    'sslmode=verify-full&sslrootcert=/certs/global-bundle.pem',
  ],
  PlanetScale: [
    'postgresql://pscale_api_x.y:hunter2@aws-eu-west-2-1.pg.psdb.cloud:5432/postgres?sslmode=verify-full&sslrootcert=system&sslnegotiation=direct',
    'sslmode=verify-full&sslnegotiation=direct',
  ],
  'any, with keep-alive': [
    'postgresql://u:hunter2@db/x?keepalives=1&keepalives_idle=30&sslrootcert=system&keepalives_interval=10&client_encoding=LATIN1&pool_timeout=0',
    'sslmode=verify-full',
    ['keepalives', 'keepalives_idle', 'keepalives_interval', 'client_encoding', 'pool_timeout'],
  ],
};

test.each(Object.entries(PROVIDERS))(
  'the URL of a provider works as it is pasted: %s',
  (_provider, [url, parameters, ignored = []]) => {
    const config = readConfig(definition.identity, { DATABASE_URL: url });
    const [before] = url.split('?');
    expect(config.databaseUrl).toBe(parameters === '' ? before : `${before}?${parameters}`);
    expect(config.ignoredParameters).toEqual(ignored);
    const documented = readFileSync('docs/configuration.md', 'utf8');
    for (const name of ignored) expect(documented).toContain(`\`${name}`);
  },
);

test('every odd character may be in the password of DATABASE_URL', () => {
  const password = ' !"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~äß€';
  const DATABASE_URL = `postgresql://store:${encodeURIComponent(password)}@db:5432/store`;
  expect(readConfig(definition.identity, { DATABASE_URL }).databaseUrl).toBe(DATABASE_URL);
});

test('staging and production require a DATABASE_URL', () => {
  for (const APP_ENV of ['staging', 'production'])
    expect(() => readConfig(definition.identity, { APP_ENV })).toThrow(/DATABASE_URL must be set/);
});

test('PUBLIC_URL is normalized so that it is valid in a header', () => {
  expect(readConfig(definition.identity, { PUBLIC_URL: 'https://магазин.example/зоо/' }).publicUrl).toBe(
    'https://xn--80aairftm.example/%D0%B7%D0%BE%D0%BE',
  );
});

describe('a secret in a file', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await createTemporaryFolder();
  });
  afterEach(() => rm(folder, { recursive: true }));

  async function writeSecret(content: string): Promise<string> {
    const path = join(folder, 'secret');
    await writeFile(path, content);
    return path;
  }

  const ENDS = ['', '\n', '\r\n', ' \n', '\t\r\n\n', ' '];
  const STARTS = ['', ' ', '\n', '\uFEFF'];
  test.each(STARTS.flatMap((start) => ENDS.map((end) => [start, end] as const)))(
    'is read without what is around it: %j and %j',
    async (start, end) => {
      const path = await writeSecret(`${start}postgres://user:hunter2@db/store${end}`);
      const { databaseUrl } = readConfig(definition.identity, {
        DATABASE_URL_FILE: path,
        APP_ENV: 'production',
      });
      expect(databaseUrl).toBe('postgres://user:hunter2@db/store');
      const redis = await writeSecret(`${start}redis://:hunter2@a/1${end}`);
      expect(readConfig(definition.identity, { REDIS_URL_FILE: redis }).redisUrls).toEqual([
        'redis://:hunter2@a/1',
      ]);
    },
  );

  test.each(['DATABASE_URL', 'REDIS_URL'])(
    'is one line of a regular file of at most 64 KiB: %s',
    async (name) => {
      const url = `${name === 'DATABASE_URL' ? 'postgres' : 'redis'}://u:hunter2@db/0`;
      const refusal = (path: string) => {
        const read = () => readConfig(definition.identity, { [`${name}_FILE`]: path });
        expect(read).not.toThrow(/hunter2/);
        return expect(read);
      };
      const second = new RegExp(`^[^\\n]*: ${name}_FILE names a file with a second line[^\\n]*$`);
      for (const end of ['\n', '\r\n', '\r', '\n\n'])
        refusal(await writeSecret(`${url}${end}${url}`)).toThrow(second);
      const large = await writeSecret(' '.repeat(65_537));
      refusal(large).toThrow(`${name}_FILE names a file of more than 64 KiB: ${large}`);
      await truncate(large, 300 * 2 ** 20);
      refusal(large).toThrow(`${name}_FILE names a file of more than 64 KiB: ${large}`);
      await writeSecret(url.padEnd(65_536));
      expect(() => readConfig(definition.identity, { [`${name}_FILE`]: large })).not.toThrow();
      const others = [folder, '/dev/zero'];
      if (process.platform !== 'win32') {
        others.push(join(folder, 'pipe'));
        // Which nobody writes to
        execFileSync('mkfifo', [join(folder, 'pipe')]);
      }
      for (const path of others) refusal(path).toThrow(`${name}_FILE does not name a regular file: ${path}`);
    },
  );

  test.each(['DATABASE_URL', 'REDIS_URL'])('excludes %s itself, and one of both has to go', async (name) => {
    const path = await writeSecret('x');
    expect(() => readConfig(definition.identity, { [name]: 'x', [`${name}_FILE`]: path })).toThrow(
      new RegExp(`${name} and ${name}_FILE are both set`),
    );
  });

  test.each(['DATABASE_URL', 'REDIS_URL'])('has to be readable, not empty, and valid: %s', async (name) => {
    const readFrom = (path: string) => () => readConfig(definition.identity, { [`${name}_FILE`]: path });
    expect(readFrom(join(folder, 'none'))).toThrow(
      new RegExp(`^[^\\n]*: ${name}_FILE cannot be read \\(ENOENT[^\\n]*\\)$`),
    );
    expect(readFrom(await writeSecret('\n'))).toThrow(new RegExp(`: ${name}_FILE names an empty file`));
    const invalid = await writeSecret('mysql://hunter2');
    expect(readFrom(invalid)).toThrow(new RegExp(`: ${name} must `));
    expect(readFrom(invalid)).not.toThrow(/hunter2/);
  });

  test.each([
    ['missing', () => join(folder, 'none'), 'cannot be read'],
    ['empty', () => writeSecret('\n'), 'names an empty file'],
  ])(
    'that is %s is one problem, on one line, and not also a URL that is not set',
    async (_, path, problem) => {
      const linux = { platform: 'linux', versions: { node: '24.0.0' } } as const;
      const file = await path();
      const both = { DATABASE_URL: 'postgres://u@db/store', REDIS_URL: 'redis://a' };
      for (const [name, others] of [
        ['DATABASE_URL', { APP_ENV: 'production' }],
        ['DATABASE_URL', { REUSE_PORT: 'true', REDIS_URL: both.REDIS_URL }],
        ['REDIS_URL', { REUSE_PORT: 'true', DATABASE_URL: both.DATABASE_URL }],
      ] as const)
        expect(() => readConfig(definition.identity, { ...others, [`${name}_FILE`]: file }, linux)).toThrow(
          new RegExp(`^The configuration is invalid: ${name}_FILE ${problem}[^\\n]*$`),
        );
    },
  );
});

test('what is odd about the environment is told with what is invalid in it', () => {
  const notices = ['DATABSE_URL in .env is not a variable'];
  expect(() => readConfig(definition.identity, { APP_ENV: 'production' }, process, notices)).toThrow(
    /- DATABASE_URL must be set in production[^\n]*\n {2}- DATABSE_URL in \.env is not a variable$/,
  );
  expect(readConfig(definition.identity, {}, process, notices).appEnv).toBe('development');
});

test('METRICS_PORT is a port of its own', () => {
  const message = /: METRICS_PORT must differ from PORT/;
  expect(() => readConfig(definition.identity, { METRICS_PORT: '3000' })).toThrow(message);
  expect(() => readConfig(definition.identity, { METRICS_PORT: '08080', PORT: '8080' })).toThrow(message);
  expect(readConfig(definition.identity, { METRICS_PORT: '3000', PORT: '8080' }).metricsPort).toBe(3000);
  expect(readConfig(definition.identity, { METRICS_PORT: '0', PORT: '0' }).metricsPort).toBe(0);
});

test('the origins of apps and of browser extensions may be listed in CORS_ORIGINS', () => {
  const origins = [
    'capacitor://localhost',
    'ionic://localhost',
    'tauri://localhost',
    'http://tauri.localhost',
    'app://obsidian.md',
    'chrome-extension://aapbbdbdomjkkjkaonfhkkikfgjllcleb',
    'moz-extension://0ba9d5f0-6d6f-4a6c-9d0a-9d9f5b1f1c6e',
  ];
  expect(readConfig(definition.identity, { CORS_ORIGINS: origins.join(', ') }).corsOrigins).toEqual(origins);
});

test('only in development, and only without CORS_ORIGINS, every origin on localhost may call', () => {
  const DATABASE_URL = 'postgres://db/store';
  const CORS_ORIGINS = 'https://shop.example';
  for (const APP_ENV of ['staging', 'production'])
    expect(readConfig(definition.identity, { APP_ENV, DATABASE_URL }).corsOrigins).toEqual([]);
  for (const APP_ENV of ['development', 'staging', 'production'])
    expect(readConfig(definition.identity, { APP_ENV, DATABASE_URL, CORS_ORIGINS }).corsOrigins).toEqual([
      CORS_ORIGINS,
    ]);
});

test.each([
  ['WORKERS', '1', 'run several processes instead'],
  ['WORKERS', 'auto', 'run several processes instead'],
])('%s=%s is refused with one line that says what replaces it', (name, value, instead) => {
  const message = new RegExp(`^The configuration is invalid: ${name} is gone: ${instead}[^\\n]*$`);
  expect(() => readConfig(definition.identity, { [name]: value })).toThrow(message);
  expect(() => readConfig(definition.identity, { [name]: '' })).not.toThrow();
});

const shared = { REUSE_PORT: 'true', DATABASE_URL: 'postgres://db/store', REDIS_URL: 'redis://a' };

test.each([
  ['20.20.2', 'linux'],
  ['24.0.0', 'darwin'],
  ['24.0.0', 'win32'],
] as const)('REUSE_PORT on Node.js %s and %s is refused with one line', (node, platform) => {
  const message = /^[^\n]*REUSE_PORT needs Linux and Node\.js 22\.13 or later; this is [^\n]*$/;
  for (const environment of [shared, { REUSE_PORT: 'true' }])
    expect(() => readWith(environment, node, platform)).toThrow(message);
  expect(readWith({ ...shared, REUSE_PORT: 'false' }, node, platform).reusePort).toBe(false);
});

test('several processes on one port require Redis and a database of their own', () => {
  expect(readWith(shared, '22.13.0').reusePort).toBe(true);
  for (const missing of [{ REDIS_URL: ' , ' }, { DATABASE_URL: '' }, { DATABASE_URL: '', REDIS_URL: '' }])
    expect(() => readWith({ ...shared, ...missing })).toThrow(
      /: REUSE_PORT needs DATABASE_URL and REDIS_URL: [^\n]*$/,
    );
});

test('.env.example and docs/configuration.md have every variable', () => {
  const example = readFileSync('.env.example', 'utf8').matchAll(/^(?:# )?([A-Z_]+)=/gm);
  expect([...example].map(([, name]) => name).sort()).toEqual([...VARIABLES].sort());
  const [table = ''] = /\| variable \|[\s\S]*?\n\n/.exec(readFileSync('docs/configuration.md', 'utf8')) ?? [];
  const documented = [...table.matchAll(/^\| (`[^|]+) \|/gm)].flatMap(
    ([, cell = '']) => cell.match(/[A-Z_]{3,}/g) ?? [],
  );
  expect(documented.sort()).toEqual([...VARIABLES].sort());
});

test.each([
  ['0.0.0.0', 'http://localhost:3000'],
  ['::', 'http://localhost:3000'],
  ['0:0:0:0:0:0:0:0', 'http://localhost:3000'],
  ['0', 'http://localhost:3000'],
  ['0x0.0', 'http://localhost:3000'],
  ['::0.0.0.0', 'http://localhost:3000'],
  ['::ffff:0.0.0.0', 'http://localhost:3000'],
  ['::FFFF:0:0', 'http://localhost:3000'],
  ['::1', 'http://[::1]:3000'],
  ['::ffff:127.0.0.1', 'http://[::ffff:127.0.0.1]:3000'],
  ['fe80::1%eth0', 'http://[fe80::1%eth0]:3000'],
  ['127.0.0.1', 'http://127.0.0.1:3000'],
  ['store.example', 'http://store.example:3000'],
])(
  'a service that listens on %s, without a PUBLIC_URL, names an address that can be called: %s',
  (host, url) => {
    expect(toLocalUrl(host, 3000)).toBe(url);
  },
);
