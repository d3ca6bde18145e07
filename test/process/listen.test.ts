import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect, test } from 'vitest';
import { OperatorError } from '../../src/errors/operator-error.js';
import { checkAddress } from '../../src/process/listen.js';

// 192.0.2.1 is an address for documentation (RFC 5737), and nothing is named .invalid (RFC 6761).
test.each([
  ['192.0.2.1', /^HOST 192\.0\.2\.1 is not an address of this machine: set HOST to [^\n]*$/],
  ['host.invalid', /^HOST host\.invalid cannot be resolved \(E\w+\): set HOST to [^\n]*$/],
  ['a b', /^HOST a b cannot be resolved \(E\w+\): set HOST to [^\n]*$/],
])(
  'HOST %s, where the service cannot listen, is rejected on one line that says what to do',
  async (host, message) => {
    const attempt = checkAddress({ host, port: 0, variable: 'PORT' });
    await expect(attempt).rejects.toThrow(message);
    await expect(attempt).rejects.toBeInstanceOf(OperatorError);
  },
);

test('the port is free again after the check', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const address = { host: '127.0.0.1', port, variable: 'METRICS_PORT' } as const;
  await expect(checkAddress(address)).rejects.toThrow(`METRICS_PORT ${port} is in use on 127.0.0.1`);
  server.close();
  for (let n = 0; n < 3; n += 1) await checkAddress(address);
});
