import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { post } from '@animal-store/platform/testing';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { hasHaproxy, type Replica, startHaproxy } from '../../packages/platform/test/support/haproxy.js';

const REQUESTS = 20;

vi.setConfig({ testTimeout: 180_000 });

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

interface FakeReplica {
  readonly ports: Replica;
  /** What it answers health checks with, if it does */
  readiness: number | undefined;
  stop(): void;
}

/** Answers every request with its name. */
async function startReplica(name: string): Promise<FakeReplica> {
  const server = await listen((_request, response) => response.end(name));
  const probes = await listen((_request, response) => {
    if (replica.readiness !== undefined) response.writeHead(replica.readiness).end();
  });
  const replica: FakeReplica = {
    ports: { PORT: portOf(server), METRICS_PORT: portOf(probes) },
    readiness: 200,
    stop() {
      for (const each of [server, probes]) end(each);
    },
  };
  return replica;
}

async function listen(listener: RequestListener): Promise<Server> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(() => end(server));
  return server;
}

const portOf = (server: Server) => `${(server.address() as AddressInfo).port}`;

function end(server: Server): void {
  server.close();
  server.closeAllConnections();
}

describe.runIf(hasHaproxy())('while a busy replica answers its checks late, and the other one stops', () => {
  test.each([
    ['has noticed', true],
    ['has not noticed yet', false],
  ])('the busy one gets every request, when HAProxy %s that the other stops', async (_name, isNoticed) => {
    const [stopping, busy] = [await startReplica('stopping'), await startReplica('busy')];
    const proxy = await startHaproxy([stopping.ports, busy.ports]);
    closing.push(() => proxy.close());
    busy.readiness = undefined;
    await proxy.until(2, 'DOWN');
    if (isNoticed) {
      stopping.readiness = 503;
      await proxy.until(1, 'DOWN');
    }
    stopping.stop();
    const ask = async (init: RequestInit) => (await fetch(`${proxy.url}/v1/pets`, init)).text();
    const answers = Array.from({ length: REQUESTS }, (_, index) => ask(index % 2 === 0 ? {} : post({})));
    expect(await Promise.all(answers)).toEqual(answers.map(() => 'busy'));
  });
});
