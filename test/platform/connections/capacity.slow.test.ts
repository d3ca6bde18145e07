import pg from 'pg';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { create, list, otherList } from '../../support/operations-under-test.js';
import { PostgresServer } from '../../support/postgres-server.js';
import { setUpServiceProcesses } from '../../support/service-processes.js';
import { type Caller, createCaller, post, startService } from '../../support/test-service.js';

const MAX_CONNECTIONS = 24;
/** PostgreSQL reserves three for superusers. */
const FOR_ORDINARY_ROLES = MAX_CONNECTIONS - 3;
const PASSWORD = 'secret';
const ROLE = `CREATE ROLE store LOGIN PASSWORD '${PASSWORD}' IN ROLE pg_read_all_data, pg_write_all_data`;

const processes = setUpServiceProcesses();
let server: PostgresServer;
let databaseUrl: string;
const others: pg.Client[] = [];

beforeAll(async () => {
  server = await PostgresServer.start({ max_connections: String(MAX_CONNECTIONS) });
  await server.query(ROLE);
  databaseUrl = server.urlOf('store', PASSWORD);
});
afterAll(() => server.close());
afterEach(freeAllConnections);

/** Opens connections until the server refuses a further one; returns why. */
async function takeAllConnections(url: string): Promise<string> {
  for (;;) {
    const other = new pg.Client(url);
    other.on('error', () => {});
    const refusal = await other.connect().then(
      () => undefined,
      (error: Error) => error.message,
    );
    if (refusal !== undefined) return refusal;
    others.push(other);
  }
}

async function freeAllConnections(): Promise<void> {
  await Promise.all(others.splice(0).map((other) => other.end()));
}

/** A read, both kinds of create, and a query of Prisma. */
const sendOneOfEach = (call: Caller, idempotencyKey: string) =>
  Promise.all([
    call(list.path),
    call(create.path, post(create.body)),
    call(create.trpc, post(create.body, { 'idempotency-key': idempotencyKey })),
    call(otherList.path),
  ]);
const statusesOf = async (requests: ReturnType<typeof sendOneOfEach>) =>
  (await requests).map(({ status }) => status);

test('others take all connections of the server while the service runs: open ones serve, without one it is 503, and back', async ({
  annotate,
}) => {
  const service = await startService({ databaseUrl });
  const call = createCaller(service);
  expect(await statusesOf(sendOneOfEach(call, 'before'))).toEqual([200, 201, 200, 200]);
  expect(await takeAllConnections(databaseUrl)).toMatch(/connection slots are reserved/);
  const crowded = await Promise.all(
    Array.from({ length: 10 }, (_, n) => statusesOf(sendOneOfEach(call, `crowded-${n}`))),
  );
  expect(crowded.flat().filter((status) => ![200, 201, 503].includes(status))).toEqual([]);
  expect(crowded.flat()).toContain(200);
  // The service loses its connections, also those that it was just opening, and others are faster.
  const takeThoseOfTheService = async () => {
    await server.query(
      "SELECT pg_terminate_backend(pid, 2000) FROM pg_stat_activity WHERE application_name = 'animal-store'",
    );
    await takeAllConnections(databaseUrl);
    return others.length;
  };
  await expect.poll(takeThoseOfTheService, { interval: 20 }).toBe(FOR_ORDINARY_ROLES);
  const [listed, created] = await sendOneOfEach(call, 'full');
  expect([listed.status, created.status]).toEqual([503, 503]);
  expect(listed.headers.get('retry-after')).toBe('1');
  expect(created.body.code).toBe('service_unavailable');
  expect((await call('/health/ready', { key: null })).status).toBe(503);
  await freeAllConnections();
  const freedAt = performance.now();
  await expect
    .poll(() => statusesOf(sendOneOfEach(call, 'full')), { interval: 20 })
    .toEqual([200, 201, 200, 200]);
  await annotate(`served again ${Math.round(performance.now() - freedAt)} ms after connections were free`);
  await service.close();
});

test.for([
  { who: 'an ordinary role', refusal: /connection slots are reserved/ },
  { who: 'a superuser', refusal: /too many clients already/ },
])('a start as $who without a free connection ends with one line that says so', async ({ who, refusal }) => {
  const url = who === 'a superuser' ? server.url : databaseUrl;
  await takeAllConnections(url);
  const program = processes.start({ DATABASE_URL: url });
  expect(await program.ended).toBe(1);
  expect(program.output()).toMatch(/^The database cannot be used \(.*\): .*max_connections.*\n$/);
  expect(program.output()).toMatch(refusal);
});
