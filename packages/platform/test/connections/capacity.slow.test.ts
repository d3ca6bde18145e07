import { createCaller, post } from '@animal-store/platform/testing';
import type pg from 'pg';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { create, list, otherList } from '#operations-under-test';
import { PostgresServer } from '../support/postgres-server.js';
import { setUpServiceProcesses } from '../support/service-processes.js';
import { asService } from '../support/service-role.js';
import { takeAllConnections } from '../support/take-connections.js';
import { startService } from '../support/test-service.js';

const processes = setUpServiceProcesses();
let server: PostgresServer;
const others: pg.Client[] = [];
const freeAllConnections = () => Promise.all(others.splice(0).map((other) => other.end()));

beforeAll(async () => {
  server = await PostgresServer.start({ max_connections: '24' });
});
afterAll(() => server.close());
afterEach(freeAllConnections);

test('others take all free connections of the server while the service runs: those that are open serve', async () => {
  const service = await startService({ databaseUrl: server.url });
  const call = createCaller(service);
  /** A read, both kinds of create, and another read */
  const sendOneOfEach = async (idempotencyKey: string) => {
    const responses = await Promise.all([
      call(list.path),
      call(create.path, post(create.body)),
      call(create.trpc, post(create.body, { 'idempotency-key': idempotencyKey })),
      call(otherList.path),
    ]);
    return responses.map(({ status }) => status);
  };
  expect(await sendOneOfEach('before')).toEqual([200, 201, 200, 200]);
  expect(await takeAllConnections(asService(server.url), others)).toMatch(/connection slots are reserved/);
  const crowded = await Promise.all(Array.from({ length: 10 }, (_, n) => sendOneOfEach(`crowded-${n}`)));
  expect(crowded.flat().filter((status) => ![200, 201, 503].includes(status))).toEqual([]);
  expect(crowded.flat()).toContain(200);
  await service.close();
});

test.for([
  { who: 'an ordinary role', refusal: /connection slots are reserved/ },
  { who: 'a superuser', refusal: /too many clients already/ },
])('a start as $who without a free connection ends with one line that says so', async ({ who, refusal }) => {
  const url = who === 'a superuser' ? server.url : asService(server.url);
  await takeAllConnections(url, others);
  const program = processes.start({ DATABASE_URL: url });
  expect(await program.ended).toBe(1);
  expect(program.output()).toMatch(/^The database cannot be used \(.*\): .*max_connections.*\n$/);
  expect(program.output()).toMatch(refusal);
});
