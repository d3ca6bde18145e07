import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import {
  createCaller,
  createTemporaryFolder,
  post,
  until,
  untilListening,
} from '@animal-store/platform/testing';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { create, list, otherList } from '#operations-under-test';
import { INTRUSIONS, MOMENTS, startBreakingRelay } from '../support/breaking-relay.js';
import {
  type Certificates,
  canCreateCertificates,
  createCertificates,
  issueCertificate,
} from '../support/certificates.js';
import { PostgresServer } from '../support/postgres-server.js';
import { run, runKeys, UNREACHED_LIMITS } from '../support/process.js';
import { setUpServiceProcesses } from '../support/service-processes.js';
import { startService } from '../support/test-service.js';

const PASSWORD = 'secret';
/** Stands for the path of the authority that has signed the server's certificate. */
const ROOT = '<root>';

const processes = setUpServiceProcesses();
let folder: string;
let server: PostgresServer;
let trusted: Certificates;
/** Signed by an authority of the same name */
let untrusted: Certificates;
let expired: Certificates;

describe.runIf(canCreateCertificates())('PostgreSQL that accepts only TLS, with a private authority', () => {
  beforeAll(async () => {
    folder = await createTemporaryFolder();
    for (const authority of ['own', 'other']) await mkdir(join(folder, authority));
    trusted = createCertificates(join(folder, 'own'), 'localhost');
    expired = issueCertificate(join(folder, 'own'), 'localhost', 'expired', -1);
    untrusted = createCertificates(join(folder, 'other'), 'localhost');
    server = await PostgresServer.start({}, trusted);
    await server.query(`CREATE ROLE store LOGIN SUPERUSER PASSWORD '${PASSWORD}'`);
  });
  afterAll(async () => {
    await server.close();
    await rm(folder, { recursive: true, force: true });
  });

  test.each([
    { host: 'localhost', parameters: `sslmode=verify-full&sslrootcert=${ROOT}` },
    { host: 'localhost', parameters: `sslmode=require&sslrootcert=${ROOT}` },
    {
      host: '127.0.0.1',
      parameters: `uselibpqcompat=true&sslmode=verify-ca&sslrootcert=${ROOT}`,
    },
    { host: '127.0.0.1', parameters: 'uselibpqcompat=true&sslmode=require' },
    { host: '127.0.0.1', parameters: 'sslmode=no-verify' },
  ])('$parameters on $host: serves', async ({ host, parameters }) => {
    const service = await startService({ databaseUrl: urlOf(host, parameters) });
    const call = createCaller(service);
    expect((await call(list.path)).status).toBe(200);
    expect((await call(create.path, post(create.body))).status).toBe(201);
    await service.close();
  });

  test.each([
    {
      host: 'localhost',
      parameters: 'sslmode=require',
      reason: /unable to verify the first certificate/,
    },
    {
      host: 'localhost',
      parameters: 'sslmode=verify-full',
      reason: /unable to verify the first certificate/,
    },
    {
      host: '127.0.0.1',
      parameters: `sslmode=verify-full&sslrootcert=${ROOT}`,
      reason: /does not match certificate's altnames/,
    },
    { host: 'localhost', parameters: 'sslmode=disable', reason: /no encryption/ },
    { host: 'localhost', parameters: `sslmode=verify-full&sslrootcert=/nowhere/ca.pem`, reason: /ENOENT/ },
  ])('$parameters on $host: the start ends with one line that says why', async (refused) => {
    await expectRefusal('main', [], urlOf(refused.host, refused.parameters), refused.reason);
  });

  test('whose streams break: nothing but 503 meanwhile, no process ends, and requests are served again', async () => {
    await server.useCertificate(trusted);
    const relay = await startBreakingRelay({ host: '127.0.0.1', port: server.port });
    const url = new URL(urlOf('localhost', `sslmode=verify-full&sslrootcert=${ROOT}`));
    url.port = `${relay.port}`;
    const program = processes.start({ DATABASE_URL: url.href });
    const service = await untilListening(program);
    const { key } = await runKeys({ DATABASE_URL: url.href }, 'create', '--name', 'x', ...UNREACHED_LIMITS);
    const call = createCaller({ url: service, key });
    const untilServed = () =>
      expect.poll(async () => (await call(list.path)).status, { interval: 20 }).toBe(200);
    for (const [intrusion, moment] of INTRUSIONS.flatMap((of) => MOMENTS.map((at) => [of, at] as const))) {
      // The server's first chunk says that it accepts TLS.
      for (const chunk of [moment.chunk, moment.chunk + 1]) {
        await untilServed();
        relay.breakAt({ ...moment, chunk }, intrusion);
        relay.breakOpen(intrusion);
        const wanted = relay.broken + 3;
        await until(async () => {
          const calls = [call(list.path), call(create.path, post(create.body)), call(otherList.path)];
          for (const { status } of await Promise.all(calls)) expect([200, 201, 503]).toContain(status);
          return relay.broken >= wanted || undefined;
        });
        relay.breakAt(undefined, intrusion);
      }
    }
    await untilServed();
    expect(program.child.exitCode).toBe(null);
    await relay.close();
  });

  describe.each([
    { name: 'untrusted', present: () => server.useCertificate(untrusted), reason: /signature|certificate/ },
    { name: 'expired', present: () => server.useCertificate(expired), reason: /certificate has expired/ },
  ])('with a certificate that is $name', ({ present, reason }) => {
    const verified = () => urlOf('localhost', `sslmode=verify-full&sslrootcert=${ROOT}`);

    test('put in while the service runs: open connections go on, new ones are 503 with the reason in the log, and back', async ({
      annotate,
    }) => {
      await server.useCertificate(trusted);
      const lines: string[] = [];
      const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) });
      const service = await startService({ databaseUrl: verified(), log });
      const call = createCaller(service);
      expect((await call(list.path)).status).toBe(200);
      await present();
      expect((await call(list.path)).status).toBe(200);
      await terminateConnections();
      for (const init of [{}, post(create.body), post(create.body, { 'idempotency-key': 'tls' })]) {
        expect((await call(list.path, init)).body.code).toBe('service_unavailable');
      }
      expect((await call(otherList.path)).body.code).toBe('service_unavailable');
      expect((await call(list.trpc)).body.error.data.error.code).toBe('service_unavailable');
      expect(lines.join('')).toMatch(reason);
      await server.useCertificate(trusted);
      const replacedAt = performance.now();
      const status = async () => (await call(list.path)).status;
      await expect.poll(status, { interval: 20 }).toBe(200);
      await annotate(`served again after ${Math.round(performance.now() - replacedAt)} ms`);
      expect((await call(create.path, post(create.body, { 'idempotency-key': 'tls' }))).status).toBe(201);
      await service.close();
    });

    test.each([
      ['cli', ['keys', 'list']],
      ['cli', ['migrate']],
      ['main', []],
    ] as const)('%s %j ends with one line that says so', async (script, args) => {
      await present();
      await expectRefusal(script, args, verified(), reason);
    });
  });
});

function urlOf(host: string, parameters: string): string {
  return server.urlOf('store', PASSWORD, parameters.replace(ROOT, encodeURIComponent(trusted.ca)), host);
}

function terminateConnections() {
  return server.query(
    'SELECT pg_terminate_backend(pid, 2000) FROM pg_stat_activity WHERE datname IS NOT NULL AND pid <> pg_backend_pid()',
  );
}

async function expectRefusal(
  script: 'main' | 'cli',
  args: readonly string[],
  databaseUrl: string,
  reason: RegExp,
): Promise<void> {
  const program = run(script, args, { DATABASE_URL: databaseUrl, PORT: '0' });
  processes.programs.push(program);
  expect(await program.ended).not.toBe(0);
  const output = program.output();
  expect(output).toMatch(/^(?:\(node:[\s\S]*\n)?The database cannot be used \(.*\): check .*\n$/);
  expect(output).toMatch(reason);
  expect(output).not.toContain(PASSWORD);
}
