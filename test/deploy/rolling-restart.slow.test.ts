import { findRedis, freePort } from '@animal-store/limits/testing';
import {
  type Caller,
  createCaller,
  type Environment,
  execute,
  type Program,
  post,
  untilListening,
  untilServed,
} from '@animal-store/platform/testing';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import {
  type Haproxy,
  hasHaproxy,
  type Replica,
  startHaproxy,
} from '../../packages/platform/test/support/haproxy.js';
import { run, runKeys, UNREACHED_LIMITS } from '../support/programs.js';
import { createTestDatabase, findServers } from '../support/service.js';

const CLIENTS = 16;

// More than all that a test waits for, one after the other.
vi.setConfig({ testTimeout: 360_000 });
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

interface Outcome {
  readonly kind: 'list' | 'create' | 'create with a key';
  /** Of the pet, for creates */
  readonly name: string;
  /** The status and the body of what is no success, or why there is no response */
  readonly failure: string | undefined;
}

/** Sends lists and creates, one after the other, until it is told to stop. */
async function sendRequests(isOver: () => boolean): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (let sent = 0; !isOver(); sent += 1) {
    const kind = (['list', 'create', 'list', 'create with a key'] as const)[sent % 4] as Outcome['kind'];
    const name = crypto.randomUUID();
    const headers: Record<string, string> = kind === 'create with a key' ? { 'idempotency-key': name } : {};
    const init = kind === 'list' ? {} : post({ name, categoryId: 1 }, headers);
    const send = () => call('/v1/pets', init);
    const failure = await send()
      // The service's own 503, which is JSON, says that this machine is too busy. What may be repeated is, as by any client.
      .then((first) => (first.status === 503 && kind !== 'create' ? untilServed(send) : first))
      .then(
        ({ status, body }) => ([200, 201].includes(status) ? undefined : `${status} ${JSON.stringify(body)}`),
        ({ message, cause }: Error) => `${message}: ${cause}`,
      );
    outcomes.push({ kind, name, failure });
  }
  return outcomes;
}

test.skipIf(!isPossible)(
  'while the replicas behind the proxy are restarted one after the other, no request fails that may be repeated, and no create is done twice',
  async ({ annotate }) => {
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
    const outcomes = (await Promise.all(clients)).flat();
    const failed = outcomes.filter(({ failure }) => failure !== undefined);
    expect(failed.filter(({ kind }) => kind !== 'create')).toEqual([]);
    await annotate(`${failed.length} of ${outcomes.length} requests failed: creates without a key`);
    const sql = 'SELECT name FROM pets';
    const pets = await execute<{ name: string }>(environment.DATABASE_URL ?? '', sql);
    const names = new Set(pets.map(({ name }) => name));
    expect(names.size).toBe(pets.length);
    const acknowledged = outcomes.filter(({ kind, failure }) => kind !== 'list' && failure === undefined);
    expect(acknowledged.filter(({ name }) => !names.has(name))).toEqual([]);
    expect(names.size).toBeLessThanOrEqual(acknowledged.length + failed.length);
  },
);

test.skipIf(!isPossible)(
  "while the database is down, the proxy passes the service's own 503 on",
  async () => {
    const server = findServers().url;
    const name = new URL(environment.DATABASE_URL ?? '').pathname.slice(1);
    await execute(server, `ALTER DATABASE ${name} ALLOW_CONNECTIONS false`);
    const terminate = 'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1';
    await execute(server, terminate, [name]);
    await proxy.untilNoneReady();
    expect((await call('/v1/pets')).body).toMatchObject({ code: 'service_unavailable', status: 503 });
  },
);
