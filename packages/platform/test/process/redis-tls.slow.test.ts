import { rm } from 'node:fs/promises';
import { canStartRedis, freePort } from '@animal-store/limits/testing';
import {
  createCaller,
  createTemporaryFolder,
  type Program,
  until,
  untilListening,
} from '@animal-store/platform/testing';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { list } from '#operations-under-test';
import { closeAll, node, onClose, server } from '../../../limits/test/support/limiter-nodes.js';
import { startCluster } from '../../../limits/test/support/redis-cluster.js';
import { PRIMARY_NAME, startSentinels } from '../../../limits/test/support/redis-sentinel.js';
import { type BreakingRelay, INTRUSIONS, MOMENTS, startBreakingRelay } from '../support/breaking-relay.js';
import { type Certificates, canCreateCertificates, createCertificates } from '../support/certificates.js';
import { runKeys, UNREACHED_LIMITS } from '../support/process.js';
import { setUpServiceProcesses } from '../support/service-processes.js';
import { createTestDatabase } from '../support/test-service.js';

const hasRedis = canStartRedis();
const isPossible = hasRedis && canCreateCertificates();

const processes = setUpServiceProcesses();
let folder: string;
let certificates: Certificates;
afterEach(closeAll);

const PASSWORD = ['--requirepass', 'top-secret', '--masterauth', 'top-secret'];
/** What the log must not have. That Redis is slow to connect to on a busy machine is no problem. */
const PROBLEM = /certificate|altnames|top-secret|other-secret/i;
const toUrl = (port: number) => `rediss://:top-secret@localhost:${port}`;

function tlsFlags(): string[] {
  const { ca, cert, key } = certificates;
  const files = ['--tls-ca-cert-file', ca, '--tls-cert-file', cert, '--tls-key-file', key];
  return [...files, '--tls-auth-clients', 'no'];
}

/** Where clients find what listens on a port: there, or at a relay */
type Announce = (port: number) => Promise<number>;

/** Three primaries, which refer clients to each other by name, as managed clusters do. */
async function startTlsCluster(announce?: Announce): Promise<string[]> {
  const names = ['--cluster-announce-hostname', 'localhost', '--cluster-preferred-endpoint-type', 'hostname'];
  const cluster = await startCluster({
    shards: 3,
    tls: true,
    password: 'top-secret',
    flags: [...tlsFlags(), ...PASSWORD, ...names],
    ...(announce && { announce }),
  });
  onClose(() => cluster.close());
  return cluster.ports.map(toUrl);
}

async function startTlsServer(announce: Announce = async (port) => port): Promise<string[]> {
  const port = await freePort();
  await server('--tls-port', `${port}`, ...tlsFlags(), ...PASSWORD);
  return [toUrl(await announce(port))];
}

async function startPlainServer(announce: Announce): Promise<string[]> {
  const { port } = await server();
  return [`redis://127.0.0.1:${await announce(port)}`];
}

/** Three sentinels whose certificates are for a name, and who have a password of their own. */
async function startTlsSentinels(announce?: Announce): Promise<string[]> {
  const setup = await startSentinels({
    tls: tlsFlags(),
    flags: PASSWORD,
    password: 'top-secret',
    sentinelPassword: 'other-secret',
    // They would take a primary whose streams break for one that is away.
    ...(announce && { announce, sentinelConfig: [`sentinel down-after-milliseconds ${PRIMARY_NAME} 60000`] }),
  });
  onClose(() => setup.close());
  const toAddress = async (host: string) => {
    const port = Number(host.split(':')[1]);
    return `localhost:${(await announce?.(port)) ?? port}`;
  };
  const hosts = await Promise.all(setup.hosts.split(',').map(toAddress));
  return [`rediss+sentinel://:top-secret@${hosts}/${PRIMARY_NAME}?sentinelPassword=other-secret`];
}

const twice = ([url = '']: readonly string[]) => [url, url];

const RELAYED = [
  { what: 'a single server', start: startTlsServer },
  { what: 'a primary behind sentinels', start: startTlsSentinels },
  { what: 'a cluster', start: startTlsCluster },
];

const DEPLOYMENTS = [
  ...RELAYED,
  { what: 'a cluster of which one address is known', start: async () => twice(await startTlsCluster()) },
];

interface StartedService {
  readonly url: string;
  readonly program: Program;
  /** What readiness says of the limits */
  readLimits(): Promise<string>;
  /** With a key whose limits no test reaches */
  readonly call: ReturnType<typeof createCaller>;
}

/** Starts a service, which trusts the private authority unless told not to. */
async function startTrusting(urls: readonly string[], isTrusted = true): Promise<StartedService> {
  const environment = { DATABASE_URL: await createTestDatabase() };
  const program = processes.start({
    ...environment,
    REDIS_URL: urls.join(','),
    ...(isTrusted && { NODE_EXTRA_CA_CERTS: certificates.ca }),
  });
  const url = await untilListening(program);
  const { key } = await runKeys(environment, 'create', '--name', 'x', ...UNREACHED_LIMITS);
  const readLimits = async () => {
    const ready = await fetch(`${url}/health/ready`);
    return ((await ready.json()) as { limits: string }).limits;
  };
  return { url, program, readLimits, call: createCaller({ url, key }) };
}

const untilCounting = ({ readLimits }: StartedService) =>
  until(async () => (await readLimits()) === 'redis' || undefined);

describe.skipIf(!isPossible)('Redis over TLS, with a certificate of a private authority', () => {
  beforeAll(async () => {
    folder = await createTemporaryFolder();
    certificates = createCertificates(folder, 'localhost');
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  test.each(DEPLOYMENTS)('$what is used', async ({ start }) => {
    const service = await startTrusting(await start());
    await untilCounting(service);
    expect(service.program.output()).not.toMatch(PROBLEM);
  });

  test.each(DEPLOYMENTS)(
    '$what that is not trusted: the log and `ready` name the problem of the certificate',
    async ({ start }) => {
      const { limiter, logged } = await node(await start(), false);
      const reason = /self-signed certificate in certificate chain/;
      await until(() => logged.find((line) => reason.test(line)));
      await expect(limiter.ready(0)).rejects.toThrow(reason);
      expect(logged.join()).not.toMatch(/top-secret|other-secret/);
    },
  );

  test.each([
    ...RELAYED.flatMap((of) => [true, false].map((isTrusted) => ({ ...of, isTrusted }))),
    { what: 'a server without TLS', start: startPlainServer, isTrusted: true },
  ])(
    '$what whose streams break (certificate trusted: $isTrusted): every request is answered, and no process ends',
    async ({ start, isTrusted }) => {
      const relays: BreakingRelay[] = [];
      const urls = await start(async (port) => {
        const relay = await startBreakingRelay({ host: '127.0.0.1', port });
        onClose(() => relay.close());
        relays.push(relay);
        return relay.port;
      });
      const service = await startTrusting(urls, isTrusted);
      // Without trust, the client ends the stream after the handshake.
      const moments = MOMENTS.filter(({ chunk }) => isTrusted || chunk === 1);
      for (const [intrusion, moment] of INTRUSIONS.flatMap((of) => moments.map((at) => [of, at] as const))) {
        if (isTrusted) await untilCounting(service);
        for (const relay of relays) relay.breakAt(moment, intrusion);
        for (const relay of relays) relay.breakOpen(intrusion);
        const before = relays.map(({ broken }) => broken);
        await until(async () => {
          expect((await service.call(list.path)).status).toBe(200);
          return relays.every(({ broken }, index) => broken > Number(before[index])) || undefined;
        });
        for (const relay of relays) relay.breakAt(undefined, intrusion);
      }
      if (isTrusted) await untilCounting(service);
      expect((await service.call(list.path)).status).toBe(200);
      expect(service.program.child.exitCode).toBe(null);
    },
  );
});
