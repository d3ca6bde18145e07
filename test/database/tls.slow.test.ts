import { mkdir, readFile, rm } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { TLSSocket } from 'node:tls';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Certificates, canCreateCertificates, createCertificates } from '../support/certificates.js';
import { run } from '../support/process.js';
import { createTemporaryFolder } from '../support/temporary-folder.js';
import { createCaller, createTestDatabase, post, startService } from '../support/test-service.js';

const tlsTest = test.runIf(canCreateCertificates());

let folder: string;
let proxy: TlsProxy;
let databaseUrl: string;

beforeEach(async () => {
  folder = await createTemporaryFolder();
  const trusted = await issue('trusted');
  const direct = new URL(await createTestDatabase());
  proxy = await startTlsProxy({ host: direct.hostname, port: Number(direct.port) });
  await proxy.use(trusted);
  direct.host = `localhost:${proxy.port}`;
  databaseUrl = `${direct.href}?sslmode=verify-full&sslrootcert=${encodeURIComponent(trusted.ca)}`;
});
afterEach(async () => {
  await proxy.close();
  await rm(folder, { recursive: true, force: true });
});

async function issue(name: string): Promise<Certificates> {
  const own = join(folder, name);
  await mkdir(own);
  return createCertificates(own, 'localhost');
}

tlsTest(
  'a certificate that is replaced by an untrusted one: 503 over both protocols, and it recovers by itself',
  async () => {
    const service = await startService({ databaseUrl });
    const call = createCaller(service);
    const trusted = proxy.certificates;
    expect((await call('/v1/pets')).status).toBe(200);
    await proxy.use(await issue('untrusted'));
    const rex = { name: 'Rex', categoryId: 1 };
    for (const init of [{}, post(rex), post(rex, { 'idempotency-key': 'tls' })]) {
      expect((await call('/v1/pets', init)).body.code).toBe('service_unavailable');
    }
    expect((await call('/v1/store/orders')).body.code).toBe('service_unavailable');
    expect((await call('/trpc/listPets')).body.error.data.error.code).toBe('service_unavailable');
    await proxy.use(trusted);
    await expect.poll(async () => (await call('/v1/pets')).status, { timeout: 5_000 }).toBe(200);
    await service.close();
  },
);

tlsTest.each([
  ['cli/program', ['keys', 'list']],
  ['cli/program', ['migrate']],
  ['main', []],
] as const)(
  '%s %j on a server with an untrusted certificate ends with one line that says so',
  async (script, args) => {
    await proxy.use(await issue('untrusted'));
    const program = run(script, args, { DATABASE_URL: databaseUrl, PORT: '0' });
    expect(await program.ended).not.toBe(0);
    expect(program.output()).toMatch(
      /^The database cannot be used \(.*certificate.*\): check its certificate; NODE_EXTRA_CA_CERTS .*\n$/,
    );
  },
);

interface TlsProxy {
  readonly port: number;
  readonly certificates: Certificates;
  /** Presents other certificates from now on. Existing connections break. */
  use(certificates: Certificates): Promise<void>;
  close(): Promise<void>;
}

/** Adds TLS to a PostgreSQL server (PostgreSQL's manual, section 55.2.10). */
async function startTlsProxy(target: { host: string; port: number }): Promise<TlsProxy> {
  const sockets = new Set<Socket>();
  let certificates: Certificates;
  let options: { key: Buffer; cert: Buffer };
  const server: Server = createServer((client) => {
    sockets.add(client);
    client.on('error', () => {}).on('close', () => sockets.delete(client));
    // The first bytes are the request for TLS.
    client.once('data', () => {
      client.write('S');
      const secure = new TLSSocket(client, { ...options, isServer: true });
      const upstream = connect(target);
      secure.on('error', () => upstream.destroy());
      upstream.on('error', () => secure.destroy());
      secure.pipe(upstream).pipe(secure);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve));
  const breakConnections = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    get certificates() {
      return certificates;
    },
    async use(wanted) {
      certificates = wanted;
      options = { key: await readFile(wanted.key), cert: await readFile(wanted.cert) };
      breakConnections();
    },
    async close() {
      breakConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
