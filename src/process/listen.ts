import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { OperatorError } from '../errors/operator-error.js';
import type { Config } from './config.js';

interface Address extends Pick<Config, 'host' | 'port'> {
  /** Other processes may listen on the port too, if all of them set this */
  readonly reusePort?: boolean;
  /** Where the port comes from */
  readonly variable: keyof typeof ANNOUNCEMENTS;
}

/** What is logged in front of the address */
const ANNOUNCEMENTS = { PORT: 'listening on', METRICS_PORT: '/metrics and /health are on' } as const;

/**
 * Listens for a moment where the service will listen, so that a wrong HOST or PORT is found before a database is
 * opened. Another process may still take the port until `listen` does.
 *
 * @throws OperatorError when that is not possible
 */
export async function checkAddress(address: Address): Promise<void> {
  await withAdvice(address, async (options) => {
    const probe = createServer().listen(options);
    await once(probe, 'listening');
    probe.close();
    await once(probe, 'close');
  });
}

/**
 * Listens on one address: for a name with several, Fastify would open further servers that are not drained.
 *
 * @throws OperatorError when that is not possible
 */
export async function listen(app: FastifyInstance, address: Address): Promise<void> {
  await withAdvice(address, async (options) => {
    await app.listen({
      ...options,
      listenTextResolver: (url) => `${ANNOUNCEMENTS[address.variable]} ${url}`,
    });
  });
}

async function withAdvice(
  { host, port, reusePort = false, variable }: Address,
  run: (options: { host: string; port: number; reusePort: boolean }) => Promise<void>,
): Promise<void> {
  try {
    const { address } = await lookup(host);
    await run({ host: address, port, reusePort });
  } catch (error) {
    throw new OperatorError(explain(error as NodeJS.ErrnoException, { host, port, variable }), {
      cause: error,
    });
  }
}

function explain({ code, message }: NodeJS.ErrnoException, { host, port, variable }: Address): string {
  if (code === 'EADDRINUSE')
    return `${variable} ${port} is in use on ${host}: stop what uses it, or set ${variable} to another one.`;
  if (code === 'EACCES')
    return `${variable} ${port} is reserved for privileged accounts: set ${variable} to 1024 or a higher one.`;
  if (code === 'EADDRNOTAVAIL')
    return `HOST ${host} is not an address of this machine: set HOST to one of its own, or to 0.0.0.0 for all of them.`;
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return `HOST ${host} cannot be resolved (${code}): set HOST to an address or the name of this machine.`;
  return `The service cannot listen on HOST ${host}, ${variable} ${port} (${message}): set them to what this machine offers.`;
}
