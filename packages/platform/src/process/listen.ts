import { lookup } from 'node:dns/promises';
import type { FastifyInstance } from 'fastify';
import { OperatorError } from '../operator-errors/operator-error.js';
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
 * Listens on one address, because for a name with several Fastify would open further servers that are not drained.
 *
 * @throws OperatorError when that is not possible
 */
export async function listen(app: FastifyInstance, address: Address): Promise<void> {
  const { host, port, reusePort = false, variable } = address;
  try {
    // Fastify passes reusePort on to Node.js, but its types do not know the option.
    const options = { host: (await lookup(host)).address, port, reusePort };
    await app.listen({ ...options, listenTextResolver: (url) => `${ANNOUNCEMENTS[variable]} ${url}` });
  } catch (error) {
    throw new OperatorError(describeFailure(error as NodeJS.ErrnoException, address), { cause: error });
  }
}

function describeFailure(
  { code, message }: NodeJS.ErrnoException,
  { host, port, variable }: Address,
): string {
  if (code === 'EADDRINUSE')
    return `${variable} ${port} is in use on ${host}: stop the program that uses it, or set ${variable} to another port.`;
  if (code === 'EACCES')
    return `${variable} ${port} is reserved for privileged accounts: set ${variable} to 1024 or higher.`;
  if (code === 'EADDRNOTAVAIL')
    return `HOST ${host} is not an address of this machine: set HOST to one of its own, or to 0.0.0.0 for all of them.`;
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return `HOST ${host} cannot be resolved (${code}): set HOST to an address or the name of this machine.`;
  return `The service cannot listen on HOST ${host}, ${variable} ${port} (${message}): set them to what this machine offers.`;
}
