import { readFile } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { findRedis } from '@animal-store/limits/testing';
import {
  type Caller,
  createCaller,
  type Environment,
  type Program,
  post,
  untilListening,
} from '@animal-store/platform/testing';
import { expect, test } from 'vitest';
import { setUpServiceProcesses } from '../../packages/platform/test/support/service-processes.js';
import { startTcpProxy } from '../../packages/platform/test/support/tcp-proxy.js';
import { runKeys, UNREACHED_LIMITS } from '../support/programs.js';
import { createTestDatabase } from '../support/service.js';

const redis = await findRedis();
const processes = setUpServiceProcesses();

async function start(environment: Environment = {}): Promise<{ service: Program; url: string }> {
  const service = processes.start(environment);
  return { service, url: await untilListening(service) };
}

/** Creates a key with limits no test reaches, while the service is running. */
async function issueKey(environment: Environment = {}): Promise<string> {
  const { dataDir: DATA_DIR } = processes;
  const args = ['create', '--name', 'chaos', ...UNREACHED_LIMITS];
  return (await runKeys({ DATA_DIR, ...environment }, ...args)).key;
}

async function readNames(call: Caller): Promise<Set<string>> {
  const names = new Set<string>();
  for (let path: string | undefined = '/v1/pets?limit=100'; path; ) {
    const { body, headers } = await call(path);
    for (const { name } of body) names.add(name);
    path = /<[^>]*?(\/v1[^>]*)>/.exec(headers.get('link') ?? '')?.[1];
  }
  return names;
}

test('SIGKILL during a stream of creates, ten times in a row: the service restarts with every acknowledged pet', {
  timeout: 90_000,
}, async () => {
  const acknowledged: string[] = [];
  let key = '';
  for (let round = 0; round < 10; round += 1) {
    const { service, url } = await start();
    key ||= await issueKey();
    const call = createCaller({ url, key });
    let inThisRound = 0;
    const create = async (stream: number) => {
      for (let n = 0; service.child.signalCode === null; n += 1) {
        const name = `${round}-${stream}-${n}`;
        const { status } = await call('/v1/pets', post({ name, categoryId: 1 }));
        expect(status).toBe(201);
        acknowledged.push(name);
        inThisRound += 1;
        if (inThisRound === 40) service.child.kill('SIGKILL');
      }
    };
    const streams = await Promise.allSettled(Array.from({ length: 8 }, (_, stream) => create(stream)));
    for (const stream of streams)
      if (stream.status === 'rejected') expect(stream.reason).toBeInstanceOf(TypeError);
    expect(await service.ended).toBe('SIGKILL');
  }
  const { url } = await start();
  const stored = await readNames(createCaller({ url, key }));
  expect(acknowledged.filter((name) => !stored.has(name))).toEqual([]);
  expect(acknowledged.length).toBeGreaterThanOrEqual(400);
});

type Outcome = 'answered' | 'not begun' | 'cut' | `failed with ${number}`;

/** Sends one create; `cut` means that a response started but did not finish. */
function create(url: string, key: string, name: string, agent: Agent | false): Promise<Outcome> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  return new Promise((resolve) => {
    const sent = request(`${url}/v1/pets`, { method: 'POST', agent, headers });
    sent.on('error', () => resolve('not begun'));
    sent.on('response', (response) => {
      response.resume();
      response.on('close', () => {
        const status = response.statusCode ?? 0;
        if (!response.complete) resolve('cut');
        else resolve(status === 201 ? 'answered' : `failed with ${status}`);
      });
    });
    sent.end(JSON.stringify({ name, categoryId: 1 }));
  });
}

test('SIGTERM under load: no response is cut, nothing unanswered was stored, exit 0', {
  timeout: 40_000,
}, async () => {
  const DATABASE_URL = await createTestDatabase();
  const environment = { DATABASE_URL, APP_ENV: 'staging', REDIS_URL: redis?.url ?? '' };
  const { service, url } = await start(environment);
  const key = await issueKey(environment);
  const outcomes = new Map<string, Outcome>();
  let responses = 0;
  const load = async (stream: number) => {
    const agent = stream % 2 === 0 ? new Agent({ keepAlive: true, maxSockets: 1 }) : false;
    for (let n = 0; ; n += 1) {
      const name = `${stream}-${n}`;
      const outcome = await create(url, key, name, agent);
      outcomes.set(name, outcome);
      if (outcome === 'answered') responses += 1;
      if (responses === 200) service.child.kill('SIGTERM');
      if (outcome !== 'answered' && service.output().includes('finishing running requests')) break;
    }
    if (agent) agent.destroy();
  };
  await Promise.all(Array.from({ length: 12 }, (_, stream) => load(stream)));
  expect(await service.ended).toBe(0);

  const again = await start({ DATABASE_URL, APP_ENV: 'staging' });
  const stored = await readNames(createCaller({ url: again.url, key }));
  const named = (wanted: Outcome) => [...outcomes].filter(([, is]) => is === wanted).map(([name]) => name);
  expect([...new Set(outcomes.values())].sort()).toEqual(['answered', 'not begun']);
  expect(new Set(named('answered'))).toEqual(stored);
  expect(stored.size).toBeGreaterThanOrEqual(200);
});

test('SIGKILL of the embedded PostgreSQL: 503 until it is restarted automatically, and nothing acknowledged is lost', async () => {
  const { url } = await start();
  const call = createCaller({ url, key: await issueKey() });
  expect((await call('/v1/pets', post({ name: 'before', categoryId: 1 }))).status).toBe(201);
  const lock = await readFile(join(processes.dataDir, 'postgres', 'data', 'postmaster.pid'), 'utf8');
  process.kill(Number(lock.split('\n')[0]), 'SIGKILL');
  const statuses = new Set<number>();
  const readStatus = async () => {
    const { status } = await call('/v1/pets?limit=100');
    statuses.add(status);
    return statuses.has(503) && status;
  };
  await expect.poll(readStatus, { timeout: 20_000, interval: 20 }).toBe(200);
  expect([...statuses].filter((status) => status !== 200 && status !== 503)).toEqual([]);
  expect(await readNames(call)).toContain('before');
});

test('when every query is slow, requests get a 503, and a create that is retried stores one pet', async () => {
  const database = new URL(await createTestDatabase());
  const proxy = await startTcpProxy({ host: database.hostname, port: Number(database.port) });
  database.port = String(proxy.port);
  const environment = { DATABASE_URL: database.href };
  const { service, url } = await start(environment);
  const call = createCaller({ url, key: await issueKey(environment) });
  expect((await call('/v1/pets')).status).toBe(200);
  proxy.slow(1_600);
  const body = post({ name: 'once', categoryId: 1 }, { 'idempotency-key': 'slow-1' });
  for (const path of ['/v1/pets', '/v1/pets']) {
    const { status, headers } = await call(path, body);
    expect([status, headers.get('retry-after')]).toEqual([503, '1']);
  }
  await proxy.restore();
  await expect.poll(async () => (await call('/v1/pets', body)).status).toBe(201);
  const { body: pets } = await call('/v1/pets');
  expect(pets.filter(({ name }: { name: string }) => name === 'once')).toHaveLength(1);
  service.child.kill('SIGTERM');
  expect(await service.ended).toBe(0);
  await proxy.close();
});
