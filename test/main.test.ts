import { once } from 'node:events';
import { chmod, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import {
  createCaller,
  createTemporaryFolder,
  execute,
  type Program,
  post,
  runNode,
  untilListening,
} from '@animal-store/platform/testing';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { describeEndOfLife } from '../packages/platform/src/process/end-of-life.js';
import {
  setUpServiceProcesses,
  stop,
  untilReady,
} from '../packages/platform/test/support/service-processes.js';
import { create, list, newItem, read, TEXT } from './support/operations-under-test.js';
import { run, runKeys } from './support/programs.js';
import { createTestDatabase, findServers } from './support/service.js';

const processes = setUpServiceProcesses();
const { programs, start } = processes;

/** On one DATA_DIR, one service after the other */
describe('on the embedded default', () => {
  type Ready = Awaited<ReturnType<typeof untilReady>>;
  let dataDir: string;
  let service: Program;
  let ready: Ready;
  const startNext = async (): Promise<Ready> => {
    service = run('main', [], { DATA_DIR: dataDir, PORT: '0', LOG_LEVEL: 'info' });
    ready = await untilReady(service);
    return ready;
  };
  const readAddress = () => readFile(join(dataDir, 'development-address'), 'utf8').catch(() => '');
  beforeAll(async () => {
    dataDir = await createTemporaryFolder();
    await startNext();
  });
  afterAll(async () => {
    await stop(service);
    await rm(dataDir, { recursive: true });
  });

  test('the first start serves a sample catalogue, its curl line works as pasted, and each request is one short line in the log', async () => {
    const { call, path } = ready;
    const { status, body, headers } = await call(path);
    expect([status, body.length]).toEqual([200, 5]);
    const next = new RegExp(`^<http://127\\.0\\.0\\.1:\\d+${list.path}\\?limit=5&cursor=5>; rel="next"$`);
    expect(headers.get('link')).toMatch(next);
    await service.until(new RegExp(`^\\[[\\d:]+\\] INFO: GET ${list.path} 200 \\d+ ms$`, 'm'));
    expect((await call('/health/ready', { key: null })).status).toBe(200);
    expect((await stat(join(dataDir, 'development-key'))).mode & 0o777).toBe(0o600);
  });

  test('the first start names what comes next: commands that package.json has, and where the client is', async () => {
    await service.until(/client-.*\.tgz/);
    const output = service.output();
    const commands = [...output.matchAll(/^ {2}npm run ([\w:]+)/gm)].map(([, name = '']) => name);
    expect(commands).toEqual(['studio', 'keys', 'storefront']);
    expect(Object.keys(JSON.parse(await readFile('package.json', 'utf8')).scripts)).toEqual(
      expect.arrayContaining(commands),
    );
    const [, client = ''] = /npm install (\S+)/.exec(output) ?? [];
    // Not the address that leads there: a lock file would have it with the checksum of today's client.
    expect(client).toMatch(new RegExp(`^${ready.url}/client-\\d+\\.\\d+\\.\\d+-[\\da-f]{16}\\.tgz$`));
    const { status, body } = await fetch(client);
    expect(status).toBe(200);
    await body?.cancel();
  });

  test('while it runs, its address is beside its key, for what is started next to it', async () => {
    await expect.poll(readAddress).toBe(`${ready.url}\n`);
  });

  test('a second service on the same DATA_DIR exits with a clear message', async () => {
    const second = start({ DATA_DIR: dataDir });
    expect(await second.ended).toBe(1);
    expect(second.output()).toContain(dataDir);
    expect(second.output()).not.toMatch(/ at .*\.js:/);
  });

  test('a later start keeps the key and the items, and does not add the sample catalogue again', async () => {
    const first = ready;
    const created = await first.call(create.path, post(newItem('Rex')));
    expect(await stop(service)).toBe(0);
    expect(await readAddress()).toBe('');
    const second = await startNext();
    expect(second.key).toBe(first.key);
    expect((await second.call(read.pathOf(created.body.id))).body).toEqual(created.body);
    expect((await second.call(`${list.path}?limit=100`)).body).toHaveLength(created.body.id);
  });

  test('after SIGKILL the service starts again with everything it acknowledged', async () => {
    const created = await ready.call(create.path, post(newItem('Survivor')));
    expect(await stop(service, 'SIGKILL')).toBe('SIGKILL');
    const second = await startNext();
    expect((await second.call(read.pathOf(created.body.id))).body[TEXT]).toBe('Survivor');
  });
});

test('variables that are meant for another PostgreSQL do not reach the embedded one', async () => {
  const { call } = await untilReady(
    start({
      PGOPTIONS: '-c default_transaction_read_only=on',
      PGSSLNEGOTIATION: 'direct',
      PGCLIENT_ENCODING: 'LATIN1',
    }),
  );
  const created = await call(create.path, post(newItem('Žofka')));
  expect(created).toMatchObject({ status: 201, body: { [TEXT]: 'Žofka' } });
});

test('invalid variables stop the start with one message that names them all', async () => {
  const service = start({ PORT: 'x', LOG_LEVEL: 'y', APP_ENV: 'z' });
  expect(await service.ended).toBe(1);
  expect(service.output()).toMatch(/PORT .*\n.*APP_ENV .*\n.*LOG_LEVEL/);
});

test('a database that lacks migrations stops the start with a message that names the command, which then works', async () => {
  const DATABASE_URL = await createTestDatabase('template0');
  const service = start({ DATABASE_URL });
  expect(await service.ended).toBe(1);
  expect(service.output()).toContain('npm run migrate');
  const { name } = findServers().serviceRole;
  expect(await run('cli', ['migrate', '--grant-to', name], { DATABASE_URL }).ended).toBe(0);
  await untilListening(start({ DATABASE_URL }));
});

describe('in production, with a DATABASE_URL', () => {
  let DATABASE_URL: string;
  let headers: Headers;
  let output: string;
  beforeAll(async () => {
    DATABASE_URL = await createTestDatabase();
    const service = start({ DATABASE_URL, APP_ENV: 'production', KEEP_ALIVE_SECONDS: '620' });
    ({ headers } = await fetch(`${await untilListening(service)}/health/live`));
    expect(await stop(service)).toBe(0);
    output = service.output();
  });

  test('connections stay open for KEEP_ALIVE_SECONDS between requests, as each response says', () => {
    expect(headers.get('keep-alive')).toBe('timeout=620');
  });

  test('the start says once, in the log, when this Node.js gets no security fixes any more', () => {
    const line = describeEndOfLife(process.versions.node, Date.now());
    const lines = output.split('\n').filter((each) => each.includes('without security fixes'));
    expect(lines.map((each) => JSON.parse(each).msg)).toEqual(line === undefined ? [] : [line]);
  });

  test('no key is created or printed', async () => {
    expect(output).not.toMatch(/as_(live|test)_/);
    expect(await execute(DATABASE_URL, 'SELECT FROM api_keys')).toEqual([]);
  });
});

test('a process has a connection of each kind before it listens, so that its first requests do not wait for one', async () => {
  const DATABASE_URL = await createTestDatabase();
  const client = new pg.Client(DATABASE_URL);
  await client.connect();
  const countConnections = async () => {
    const service = start({ DATABASE_URL });
    await untilListening(service);
    const { rows } = await client.query(
      "SELECT FROM pg_stat_activity WHERE application_name = 'animal-store' AND datname = current_database()",
    );
    expect(await stop(service)).toBe(0);
    return rows.length;
  };
  // A machine may be so busy that opening one takes longer than a request may wait: the next start finds it less so.
  await expect.poll(countConnections, { timeout: 60_000 }).toBeGreaterThanOrEqual(4);
  await client.end();
});

test('each request is logged as one line with the id of the key, and without the key or the body', async () => {
  const DATABASE_URL = await createTestDatabase();
  const { id, key } = await runKeys({ DATABASE_URL }, 'create', '--name', 'x', '--plan', 'free');
  const service = start({ DATABASE_URL, APP_ENV: 'staging' });
  const url = await untilListening(service);
  const call = createCaller({ url, key });
  await call(create.path, {
    ...post(newItem('Secret Name')),
    headers: { 'content-type': 'application/json', 'x-request-id': 'abc-1' },
  });
  const [line] = await service.until(/^.*"reqId":"abc-1".*$/m);
  expect(JSON.parse(line)).toMatchObject({ keyId: id, operation: create.name, status: 201, method: 'POST' });
  expect(service.output()).not.toContain(key);
  expect(service.output()).not.toContain('Secret Name');
});

test('a port that is in use stops the start with one line, and leaves no PostgreSQL behind', async () => {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  // On a busy machine the log may warn of queries that were too slow.
  const service = start({ METRICS_PORT: '0', PORT: String(port), LOG_LEVEL: 'silent' });
  expect(await service.ended).toBe(1);
  expect(service.output()).toMatch(/^PORT \d+ is in use on 127\.0\.0\.1: [^\n]*\n$/);
  const files = await readdir(processes.dataDir, { recursive: true });
  expect(files).toContain('postgres/data/PG_VERSION');
  expect(files).not.toContain('postgres/data/postmaster.pid');
  other.close();
});

/** Containers often let every account use every port. */
const reserved = await readFile('/proc/sys/net/ipv4/ip_unprivileged_port_start', 'utf8').catch(() => '0');

test.runIf(Number(reserved) > 80)(
  'a port that only root may use is reported to others on one line that names PORT',
  async () => {
    const script = `
      import Fastify from 'fastify';
      import { listen } from './packages/platform/dist/process/listen.js';
      const address = { host: '127.0.0.1', port: 80, variable: 'PORT' };
      // Loads all modules while the account may read them: root's own folders are closed to others.
      const other = Fastify();
      await listen(other, { ...address, port: 0 });
      await other.close();
      if (process.getuid() === 0) process.setuid(65534);
      await listen(Fastify(), address).catch(({ message }) => console.log(message));`;
    const program = runNode(['--input-type=module', '-e', script], {});
    expect(await program.ended).toBe(0);
    expect(program.output()).toMatch(/^PORT 80 is reserved for privileged accounts: set PORT to 1024 .*\n$/);
  },
);

/** Runs a script of the repository as if another version of Node.js did. */
function runOn(version: string, script: string): Program {
  const pretend = `Object.defineProperty(process, 'versions', { value: { node: '${version}' } })`;
  return runNode(['--import', `data:text/javascript,${pretend}`, script], {});
}

test.each(['dist/main.js', 'dist/cli.js', 'scripts/build.js'])(
  '%s tells an older Node.js in one line what is needed',
  async (script) => {
    const program = runOn('18.20.8', script);
    expect(await program.ended).toBe(1);
    expect(program.output()).toMatch(
      /^This is Node\.js 18\.20\.8, .* needs 20\.19\+ or 22\.13\+ or 24\.0\+: install .*\n$/,
    );
  },
);

test.each([
  ['20.18.3', 1],
  ['20.19.0', 0],
  ['21.7.3', 1],
  ['22.11.0', 1],
  ['22.13.0', 0],
  ['23.11.1', 1],
  ['24.0.0', 0],
  ['26.10.0', 0],
])('on Node.js %s, the check of the version exits with %i', async (version, code) => {
  expect(await runOn(version, 'scripts/node-version.js').ended).toBe(code);
});

async function createFolder(): Promise<string> {
  const folder = await createTemporaryFolder();
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
}

test('.env in the working directory is read, and environment variables take precedence', async () => {
  const folder = await createFolder();
  await writeFile(join(folder, '.env'), 'PORT=nonsense\nLOG_LEVEL=nonsense\n');
  const program = run('main', [], { LOG_LEVEL: 'info' }, folder);
  expect(await program.ended).toBe(1);
  expect(program.output()).toContain('PORT must be');
  expect(program.output()).not.toContain('LOG_LEVEL');
});

test('a .env that the account may not read stops the start with one line that says what to do', async () => {
  const folder = await createFolder();
  await writeFile(join(folder, '.env'), 'PORT=1\n', { mode: 0 });
  await chmod(folder, 0o755);
  const script = `
    import { loadEnvironmentFile } from ${JSON.stringify(`${process.cwd()}/packages/platform/dist/process/environment-file.js`)};
    if (process.getuid() === 0) process.setuid(65534);
    try { loadEnvironmentFile(); } catch ({ message }) { console.log(message); }`;
  const program = runNode(['--input-type=module', '-e', script], {}, folder);
  expect(await program.ended).toBe(0);
  expect(program.output()).toMatch(/^\S+\.env cannot be read: make it .*, or remove it\.\n$/);
});

test('a name in .env that is no variable of the service is named, by the service and by its commands', async () => {
  const folder = await createFolder();
  const DATABASE_URL = await createTestDatabase();
  await writeFile(join(folder, '.env'), `PROT=4702\nDATABASE_URL_FILE=\nDATABASE_URL=${DATABASE_URL}\n`);
  const service = run('main', [], { PORT: '0', APP_ENV: 'staging' }, folder);
  programs.push(service);
  const [line] = await service.until(/^\{.*PROT in .*$/m);
  expect(JSON.parse(line)).toMatchObject({
    level: 40,
    msg: expect.stringMatching(/^PROT in \S+\.env is not a variable/),
  });
  await untilListening(service);
  expect(service.output().match(/is not a variable of/g)).toHaveLength(1);
  const command = run('cli', ['seed'], {}, folder);
  expect(await command.ended).toBe(0);
  expect(command.output()).toMatch(/^PROT in \S+\.env is not a variable of the service: [^\n]*\nThe sample/);
});
