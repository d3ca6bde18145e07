import { fork } from 'node:child_process';
import { once } from 'node:events';
import type { Backend } from './backend.js';
import type { RelayOrder } from './relay.js';

/** The same PostgreSQL and Redis, so far away as the round trip takes. Closing it leaves them as they are. */
export async function addNetwork(backend: Backend, roundTripMs: number): Promise<Backend> {
  const { databaseUrl, redisUrl } = backend;
  const toDatabase = await startRelay(databaseUrl, roundTripMs);
  const toRedis = redisUrl === undefined ? undefined : await startRelay(redisUrl, roundTripMs);
  return {
    ...backend,
    databaseUrl: toDatabase.url,
    redisUrl: toRedis?.url,
    async close() {
      toDatabase.close();
      toRedis?.close();
    },
  };
}

/** @returns the URL that leads through the relay */
async function startRelay(target: string, delayMs: number) {
  const url = new URL(target);
  const relay = fork(new URL('./relay.ts', import.meta.url), { execArgv: process.execArgv });
  relay.send({ host: url.hostname, port: Number(url.port), delayMs } satisfies RelayOrder);
  const [port] = (await once(relay, 'message')) as [number];
  url.host = `127.0.0.1:${port}`;
  return { url: url.href, close: () => relay.disconnect() };
}
