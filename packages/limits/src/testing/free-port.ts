import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

const PORTS_PER_WORKER = 1_000;
/**
 * Below the ports that systems choose for connections and servers (Linux: from 32768), so that nothing takes a port
 * before a test listens on it. Each worker of Vitest has ports of its own.
 */
const FIRST_PORT = 10_000 + PORTS_PER_WORKER * Number(process.env.VITEST_POOL_ID ?? 0);

let offset = randomInt(PORTS_PER_WORKER);

/** A port that nothing listens on, and another one for each call. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < PORTS_PER_WORKER; tries += 1) {
    offset = (offset + 1) % PORTS_PER_WORKER;
    const port = FIRST_PORT + offset;
    if (await isFree(port)) return port;
  }
  throw new Error(`All ports from ${FIRST_PORT} to ${FIRST_PORT + PORTS_PER_WORKER - 1} are in use`);
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}
