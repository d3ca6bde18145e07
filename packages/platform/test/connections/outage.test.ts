import { TimeoutError } from '@animal-store/batch-loader';
import pg from 'pg';
import { expect, expectTypeOf, test } from 'vitest';
import { definition, Prisma } from '#operations-under-test';
import { openDatabase } from '../../src/connections/client.js';
import {
  DatabaseOutage,
  isDatabaseOutage,
  toDatabaseError,
  withOutages,
} from '../../src/connections/outage.js';
import { ApiError } from '../../src/errors/api-error.js';
import { toApiError } from '../../src/operations/error-mapping.js';
import type { Resource } from '../../src/operations/resource.js';
import { OPERATION_TIMEOUT_MS } from '../../src/timing/timeouts.js';

function withCode(code: string, message = 'failed'): Error {
  return Object.assign(new Error(message), { code });
}

function fromPostgres(sqlState: string): Error {
  return Object.assign(new pg.DatabaseError('failed', 6, 'error'), { code: sqlState });
}

/** As Prisma reports an error of its adapter */
function fromPrisma(code: string, originalCode?: string): Error {
  const meta = { driverAdapterError: { cause: { originalCode } } };
  return new Prisma.PrismaClientKnownRequestError('failed', { code, clientVersion: '', meta });
}

test.each([
  ['55000', 'the database accepts no connections'],
  ['55P03', 'a lock was not available'],
  ['40001', 'a transaction could not be serialized'],
  ['40P01', 'a deadlock'],
  ['25P03', 'idle in a transaction for too long'],
  ['25P04', 'a transaction that took too long'],
  ['25006', 'a read-only server'],
  ['42P05', 'a statement prepared twice'],
  ['26000', 'a statement that is not prepared'],
  ['0A000', 'a plan of before a change of the schema'],
  ['3F000', 'a schema that is being restored'],
  ['42P01', 'a table that is being restored'],
  ['42703', 'a column that is not there'],
  ['42704', 'a type that is being restored'],
  ['42804', 'a column of another type'],
  ['42883', 'a function that is being restored'],
  ['42P10', 'a constraint that is not restored yet'],
  ['42501', 'rights that are not restored yet'],
  ['08P01', 'a pooler without a free connection'],
  ['53300', 'too many connections'],
  ['57014', 'cancelled, or timed out'],
  ['57P01', 'shut down'],
  ['58000', 'a system error'],
  ['XX000', 'an internal error of PostgreSQL'],
  ['XX001', 'corrupted data'],
])('SQLSTATE %s (%s) is an outage, from pg and from Prisma', (sqlState) => {
  expect([fromPostgres(sqlState), fromPrisma('P2010', sqlState)].map(isDatabaseOutage)).toEqual([true, true]);
});

test('an outage is a 503 that names no part of the database', () => {
  const errors = [
    fromPostgres('57014'),
    fromPrisma('P2010', '53300'),
    new Error('Query read timeout'),
    new TimeoutError('Not sent within 1500 ms'),
    withCode('ECONNREFUSED'),
  ];
  const found = errors.map((error) => toApiError(new DatabaseOutage(error)));
  expect(found.map(({ body }) => body)).toEqual(errors.map(() => new ApiError('service_unavailable').body));
});

test.each(['0A001', '21000', '22003', '22P05', '23505', '23514', '42601', '42702', '54000'])(
  'SQLSTATE %s is an error in the query, from pg and from Prisma',
  (sqlState) => {
    const errors = [fromPostgres(sqlState), fromPrisma('P2010', sqlState)];
    expect(errors.map(isDatabaseOutage)).toEqual([false, false]);
  },
);

test.each([
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'CERT_HAS_EXPIRED',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'ERR_SSL_WRONG_VERSION_NUMBER',
  'ECONNREFUSED',
  'ECONNRESET',
  'ENETUNREACH',
  'EAI_AGAIN',
  'P1001',
  'P1017',
  'P2024',
  'P2028',
  'P2034',
  'P2037',
])('an error with the code %s is an outage', (code) => {
  expect(isDatabaseOutage(withCode(code))).toBe(true);
});

test.each([
  withCode('P2002'),
  withCode('P2025'),
  new TypeError('x is not a function'),
  new Prisma.PrismaClientValidationError('an argument is missing', { clientVersion: '' }),
  new ApiError('idempotency_key_reused'),
])('%s is no outage', (error) => {
  expect(isDatabaseOutage(error)).toBe(false);
});

test('the failure of a lazy promise, as Prisma returns them, is an outage too', async () => {
  const prisma = await openDatabase('postgresql://127.0.0.1:1/none', () => {}, definition).loadPrisma();
  const list = () => prisma.apiKey.findMany();
  expect(list()).not.toBeInstanceOf(Promise);
  await expect(withOutages(OPERATION_TIMEOUT_MS, { list }).list()).rejects.toThrow(DatabaseOutage);
});

test('a method that takes too long rejects with an outage', async () => {
  const store = withOutages(OPERATION_TIMEOUT_MS / 10, { find: () => new Promise(() => {}) });
  await expect(store.find()).rejects.toThrow(DatabaseOutage);
});

test('an object that has more than functions of its own is refused, by the compiler where it can tell', () => {
  class Store {
    readonly #rows = [1];
    async list() {
      return this.#rows;
    }
  }
  class Stateless {
    async list() {}
  }
  // @ts-expect-error its methods are not its own
  expect(() => withOutages(OPERATION_TIMEOUT_MS, new Store())).toThrow(TypeError);
  expect(() => withOutages(OPERATION_TIMEOUT_MS, new Stateless())).toThrow(TypeError);
  // @ts-expect-error a number is no function
  expectTypeOf(() => withOutages(OPERATION_TIMEOUT_MS, { list: async () => {}, size: 1 })).toBeFunction();
  // @ts-expect-error nor is it the store of a resource
  expectTypeOf<Resource<Store>>().toBeObject();
});

test.each([
  ['connect ECONNREFUSED 127.0.0.1:5432', /check that it is running/],
  ['canceling statement due to statement timeout', /pg_stat_activity/],
  ['canceling statement due to lock timeout', /pg_stat_activity/],
  [new TimeoutError('No answer within 10000 ms').message, /pg_stat_activity/],
  ['could not extend file: No space left on device', /free space/],
  ['permission denied for table api_keys', /--grant-to/],
  ['self-signed certificate', /NODE_EXTRA_CA_CERTS/],
  ['sorry, too many clients already', /max_connections/],
])('an operator who reads "%s" is told what to do about it', (reason, advice) => {
  const error = toDatabaseError(new Error(reason));
  expect(error.message).toContain(`(${reason})`);
  expect(error.message).toMatch(advice);
});

test.each([
  [
    'pg',
    Object.assign(fromPostgres('53100'), { message: 'No space left on device' }),
    'No space left on device (53100)',
  ],
  [
    'Prisma',
    Object.assign(fromPrisma('P2010', '57014'), {
      message: '\nInvalid `x.create()` invocation in\n/store.js:1\n\ncanceled',
    }),
    'canceled (57014)',
  ],
  ['Node.js', withCode('ECONNREFUSED', 'connect ECONNREFUSED ::1'), 'connect ECONNREFUSED ::1'],
  ['a timeout', new TimeoutError('No answer within 1500 ms'), 'No answer within 1500 ms'],
])(
  'the reason that the log has of an outage is one line, with the code of PostgreSQL: %s',
  (_name, error, reason) => {
    const { cause } = toApiError(new DatabaseOutage(error));
    expect(cause).toMatchObject({ message: reason });
  },
);
