import { rm } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { closeAll, node, onClose, server } from '../../../packages/limits/test/support/limiter-nodes.js';
import { startCluster } from '../../../packages/limits/test/support/redis-cluster.js';
import { PRIMARY_NAME, startSentinels } from '../../../packages/limits/test/support/redis-sentinel.js';
import { type Certificates, canCreateCertificates, createCertificates } from '../../support/certificates.js';
import { freePort } from '../../support/free-port.js';
import { untilListening } from '../../support/process.js';
import { canStartRedis } from '../../support/redis.js';
import { setUpServiceProcesses } from '../../support/service-processes.js';
import { createTemporaryFolder } from '../../support/temporary-folder.js';
import { createTestDatabase } from '../../support/test-service.js';
import { until } from '../../support/until.js';

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

/** Three primaries, which refer clients to each other by name, as managed clusters do. */
async function startTlsCluster(): Promise<string[]> {
  const names = ['--cluster-announce-hostname', 'localhost', '--cluster-preferred-endpoint-type', 'hostname'];
  const cluster = await startCluster({
    shards: 3,
    tls: true,
    password: 'top-secret',
    flags: [...tlsFlags(), ...PASSWORD, ...names],
  });
  onClose(() => cluster.close());
  return cluster.ports.map(toUrl);
}

async function startTlsServer(): Promise<string[]> {
  const port = await freePort();
  await server('--tls-port', `${port}`, ...tlsFlags(), ...PASSWORD);
  return [toUrl(port)];
}

/** Three sentinels whose certificates are for a name, and who have a password of their own. */
async function startTlsSentinels(): Promise<string[]> {
  const setup = await startSentinels({
    tls: tlsFlags(),
    flags: PASSWORD,
    password: 'top-secret',
    sentinelPassword: 'other-secret',
  });
  onClose(() => setup.close());
  return [`rediss+sentinel://:top-secret@${setup.hosts}/${PRIMARY_NAME}?sentinelPassword=other-secret`];
}

const twice = ([url = '']: readonly string[]) => [url, url];

const DEPLOYMENTS = [
  { what: 'a single server', start: startTlsServer },
  { what: 'a primary behind sentinels', start: startTlsSentinels },
  { what: 'a cluster of which one address is known', start: async () => twice(await startTlsCluster()) },
  { what: 'a cluster', start: startTlsCluster },
];

/** Starts a service that trusts the private authority, and waits until it counts in Redis. */
async function countsInRedis(urls: readonly string[]): Promise<string> {
  const service = processes.start({
    DATABASE_URL: await createTestDatabase(),
    REDIS_URL: urls.join(','),
    NODE_EXTRA_CA_CERTS: certificates.ca,
  });
  const url = await untilListening(service);
  await until(async () => {
    const ready = await fetch(`${url}/health/ready`);
    return ((await ready.json()) as { limits: string }).limits === 'redis' || undefined;
  });
  return service.output();
}

describe.skipIf(!isPossible)('Redis over TLS, with a certificate of a private authority', () => {
  beforeAll(async () => {
    folder = await createTemporaryFolder();
    certificates = createCertificates(folder, 'localhost');
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  test.each(DEPLOYMENTS)('$what is used', async ({ start }) => {
    expect(await countsInRedis(await start())).not.toMatch(PROBLEM);
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
});
