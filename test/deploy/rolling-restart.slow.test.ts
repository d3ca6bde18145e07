import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest';
import { execute } from '../support/execute.js';
import { freePort } from '../support/free-port.js';
import { type Haproxy, hasHaproxy, type Replica, startHaproxy } from '../support/haproxy.js';
import {
  type Environment,
  type Program,
  run,
  runKeys,
  UNREACHED_LIMITS,
  untilListening,
} from '../support/process.js';
import { findRedis } from '../support/redis.js';
import { type Caller, createCaller, createTestDatabase, post } from '../support/test-service.js';

const CLIENTS = 16;

vi.setConfig({ testTimeout: 60_000 });
const redis = await findRedis();
const isPossible = redis !== undefined && hasHaproxy();

const replicas: { readonly ports: Replica; program: Program }[] = [];
let environment: Environment;
let proxy: Haproxy;
let call: Caller;

beforeAll(async () => {
  if (!isPossible) return;
  environment = { DATABASE_URL: await createTestDatabase(), REDIS_URL: redis.url, APP_ENV: 'staging' };
  const { key } = await runKeys(environment, 'create', '--name', 'load', ...UNREACHED_LIMITS);
  for (let count = 0; count < 2; count += 1) {
    const ports = { PORT: `${await freePort()}`, METRICS_PORT: `${await freePort()}` };
    replicas.push({ ports, program: await startReplica(ports) });
  }
  const [first, second] = replicas.map(({ ports }) => ports) as [Replica, Replica];
  proxy = await startHaproxy([first, second]);
  call = createCaller({ url: proxy.url, key });
});
afterAll(async () => {
  await proxy?.close();
  for (const { program } of replicas) program.child.kill('SIGTERM');
  await Promise.all(replicas.map(({ program }) => program.ended));
});

async function startReplica(ports: Replica): Promise<Program> {
  const program = run('main', [], { ...environment, ...ports });
  await untilListening(program);
  return program;
}

/** Sends lists and creates, one after the other, until it is told to stop; returns how often each status came. */
async function sendRequests(isOver: () => boolean): Promise<Record<string, number>> {
  const statuses: Record<string, number> = {};
  for (let sent = 0; !isOver(); sent += 1) {
    const headers: Record<string, string> = sent % 4 === 1 ? { 'idempotency-key': crypto.randomUUID() } : {};
    const create = post({ name: 'Bella', categoryId: 1 }, headers);
    const outcome = await call('/v1/pets', sent % 2 === 1 ? create : {}).then(
      ({ status }) => status,
      (error: Error) => `${error.message}: ${error.cause}`,
    );
    statuses[outcome] = (statuses[outcome] ?? 0) + 1;
  }
  return statuses;
}

async function countPets(): Promise<number | undefined> {
  const sql = 'SELECT count(*)::int AS count FROM pets';
  const [row] = await execute<{ count: number }>(environment.DATABASE_URL ?? '', sql);
  return row?.count;
}

test.skipIf(!isPossible)(
  'no request fails, and no create is done twice, while the replicas behind the proxy are restarted one after the other',
  async () => {
    let isOver = false;
    const clients = Array.from({ length: CLIENTS }, () => sendRequests(() => isOver));
    try {
      for (const [index, replica] of replicas.entries()) {
        replica.program.child.kill('SIGTERM');
        expect(await replica.program.ended).toBe(0);
        await proxy.until(index + 1, 'DOWN');
        replica.program = await startReplica(replica.ports);
        await proxy.until(index + 1, 'UP');
      }
    } finally {
      isOver = true;
    }
    const statuses = new Map<string, number>();
    for (const [status, count] of (await Promise.all(clients)).flatMap(Object.entries<number>)) {
      statuses.set(status, (statuses.get(status) ?? 0) + count);
    }
    expect([...statuses.keys()].sort()).toEqual(['200', '201']);
    expect(statuses.get('201')).toBe(await countPets());
  },
);

test.skipIf(!isPossible)(
  "while the database is down, the proxy passes the service's own 503 on",
  async () => {
    const server = inject('postgresUrl');
    const name = new URL(environment.DATABASE_URL ?? '').pathname.slice(1);
    await execute(server, `ALTER DATABASE ${name} ALLOW_CONNECTIONS false`);
    const terminate = 'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1';
    await execute(server, terminate, [name]);
    await proxy.untilNoneReady();
    expect((await call('/v1/pets')).body).toMatchObject({ code: 'service_unavailable', status: 503 });
  },
);
