import { execFileSync } from 'node:child_process';
import { findRedis, freePort } from '@animal-store/limits/testing';
import {
  createCaller,
  type Environment,
  type Program,
  runCommand,
  untilListening,
} from '@animal-store/platform/testing';
import { expect, test, vi } from 'vitest';
import { list } from '#operations-under-test';
import { programOf, runKeys } from '../support/process.js';
import { setUpServiceProcesses } from '../support/service-processes.js';
import { createTestDatabase } from '../support/test-service.js';

const redis = await findRedis();
const { programs, start } = setUpServiceProcesses();
const canReusePort = process.platform === 'linux' && Number.parseInt(process.versions.node, 10) >= 22;
const node = redis && findNode();

vi.setConfig({ testTimeout: 90_000 });

/** A Node.js that can share ports. Without a package registry tests are skipped; with CI=true that fails. */
function findNode(): string | undefined {
  if (canReusePort) return process.execPath;
  if (process.platform !== 'linux') return undefined;
  try {
    return execFileSync('bash', ['.ci/with-node', '24', 'which', 'node'], {
      encoding: 'utf8',
      stdio: 'pipe',
    }).trim();
  } catch (error) {
    if (process.env.CI === 'true') throw error;
    process.stderr.write('Skipped the tests of REUSE_PORT: npm could not install Node.js 24\n');
    return undefined;
  }
}

async function prepare() {
  const DATABASE_URL = await createTestDatabase();
  const PORT = String(await freePort());
  return { DATABASE_URL, REDIS_URL: redis?.url ?? '', APP_ENV: 'staging', PORT, LOG_LEVEL: 'info' };
}

/** Starts the service on the Node.js that can share ports. */
function startOnNewer(environment: Environment): Program {
  const program = runCommand(node ?? '', [programOf('main')], environment);
  programs.push(program);
  return program;
}

test.runIf(node)(
  'with REUSE_PORT two processes answer on one port and share limits, and one goes on when the other stops',
  async () => {
    const environment = await prepare();
    const limits = ['--plan', 'enterprise', '--per-minute', '1000', '--per-day', '60'];
    const { key } = await runKeys(environment, 'create', '--name', 'x', ...limits);
    const shared = { ...environment, REUSE_PORT: 'true' };
    const services = [startOnNewer(shared), startOnNewer(shared)] as const;
    const [url = '', other] = await Promise.all(services.map(untilListening));
    expect(other).toBe(url);

    const call = createCaller({ url, key });
    const counts: number[] = [];
    // Each request is a connection of its own, and the kernel chooses a process for it: 60 never all go to the same.
    for (let sent = 0; sent < 60; sent += 1) {
      const { status, headers } = await call(list.path, { headers: { connection: 'close' } });
      expect(status).toBe(200);
      counts.push(Number(headers.get('x-ratelimit-remaining')));
    }
    expect(counts).toEqual(Array.from({ length: 60 }, (_, n) => 59 - n));
    expect((await call(list.path, { headers: { connection: 'close' } })).status).toBe(429);
    for (const { until } of services) await until(new RegExp(`"operation":"${list.name}"`));

    services[0].child.kill('SIGTERM');
    expect(await services[0].ended).toBe(0);
    const options = { key: null, headers: { connection: 'close' } };
    for (let sent = 0; sent < 20; sent += 1) expect((await call('/health/live', options)).status).toBe(200);
  },
);

test.runIf(node)(
  'a port whose owner does not share it stops the start with one line that names PORT',
  async () => {
    const environment = await prepare();
    await untilListening(startOnNewer(environment));
    const service = startOnNewer({ ...environment, REUSE_PORT: 'true', LOG_LEVEL: 'silent' });
    expect(await service.ended).toBe(1);
    expect(service.output()).toBe(
      `PORT ${environment.PORT} is in use on 127.0.0.1: stop the program that uses it, or set PORT to another port.\n`,
    );
  },
);

test.skipIf(canReusePort)(
  'where ports cannot be shared, REUSE_PORT ends the start with one line',
  async () => {
    const service = start({ REUSE_PORT: 'true' });
    expect(await service.ended).toBe(1);
    expect(service.output()).toMatch(/^[^\n]*REUSE_PORT needs Linux and Node\.js 22\.13 or later[^\n]*\n$/);
  },
);
