import type { AddressInfo } from 'node:net';
import Fastify from 'fastify';
import { expect, test } from 'vitest';
import { OperatorError } from '../../src/operator-errors/operator-error.js';
import { listen } from '../../src/process/listen.js';

// 192.0.2.1 is an address for documentation (RFC 5737), and nothing is named .invalid (RFC 6761).
test.each([
  ['192.0.2.1', /^HOST 192\.0\.2\.1 is not an address of this machine: set HOST to [^\n]*$/],
  ['host.invalid', /^HOST host\.invalid cannot be resolved \(E\w+\): set HOST to [^\n]*$/],
  ['a b', /^HOST a b cannot be resolved \(E\w+\): set HOST to [^\n]*$/],
])(
  'HOST %s, where the service cannot listen, is rejected on one line that says what to do',
  async (host, message) => {
    const attempt = listen(Fastify(), { host, port: 0, variable: 'PORT' });
    await expect(attempt).rejects.toThrow(message);
    await expect(attempt).rejects.toBeInstanceOf(OperatorError);
  },
);

test.each(['PORT', 'METRICS_PORT'] as const)(
  'a port that is in use is rejected on one line that names %s',
  async (variable) => {
    const address = { host: '127.0.0.1', variable };
    const other = Fastify();
    await listen(other, { ...address, port: 0 });
    const { port } = other.server.address() as AddressInfo;
    await expect(listen(Fastify(), { ...address, port })).rejects.toThrow(
      `${variable} ${port} is in use on 127.0.0.1: stop the program that uses it, or set ${variable} to another port.`,
    );
    await other.close();
  },
);
