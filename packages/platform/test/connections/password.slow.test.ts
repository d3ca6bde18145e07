import { createCaller, post, untilListening } from '@animal-store/platform/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { create, TABLE, TEXT } from '#operations-under-test';
import { PostgresServer } from '../support/postgres-server.js';
import { run, runKeys } from '../support/process.js';
import { setUpServiceProcesses } from '../support/service-processes.js';

/** All printable ASCII characters but letters and digits, and some others */
const PASSWORD = ' !"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~%41äß€🐾';

const processes = setUpServiceProcesses();
let server: PostgresServer;
let environment: { readonly DATABASE_URL: string; readonly APP_ENV: string };

beforeAll(async () => {
  server = await PostgresServer.start();
  await server.query(`CREATE ROLE store LOGIN PASSWORD '${PASSWORD.replace("'", "''")}'`);
  await server.query('CREATE DATABASE store OWNER store');
  const url = new URL(server.urlOf('store', PASSWORD));
  url.pathname = '/store';
  environment = { DATABASE_URL: url.href, APP_ENV: 'staging' };
});
afterAll(() => server.close());

test('a password of odd characters: migrations, keys, the service and Studio connect with it', async () => {
  const migrate = run('cli', ['migrate'], environment);
  expect(await migrate.ended, migrate.output()).toBe(0);
  const { key } = await runKeys(environment, 'create', '--name', 'x', '--plan', 'free');
  const service = processes.start(environment);
  const call = createCaller({ url: await untilListening(service), key });
  expect((await call(create.path, post(create.body))).status).toBe(201);
  expect((await call(create.path, post(create.body, { 'idempotency-key': 'odd' }))).status).toBe(201);
  const studio = run('cli', ['studio'], environment);
  processes.programs.push(studio);
  const [address] = await studio.until(/http:\/\/localhost:\d+/);
  const query = { sql: `SELECT ${TEXT} FROM ${TABLE}`, parameters: [] };
  const response = await fetch(`${address}/bff`, post({ procedure: 'query', query }));
  expect(await response.json()).toEqual([
    null,
    [create.body, create.body].map((body) => ({ [TEXT]: body[TEXT] })),
  ]);
});

test('another password ends the start with one line that does not show it', async () => {
  const DATABASE_URL = environment.DATABASE_URL.replace('%21', 'x').replace('!', 'x');
  const service = processes.start({ ...environment, DATABASE_URL });
  expect(await service.ended).toBe(1);
  const output = service.output();
  expect(output).toMatch(/^The database cannot be used \(password authentication failed .*\n$/);
  const { password } = new URL(DATABASE_URL);
  for (const text of [password, decodeURIComponent(password)]) expect(output).not.toContain(text);
});
