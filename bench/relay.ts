import { type AddressInfo, connect, createServer } from 'node:net';

/*
 * A process that stands between a server and PostgreSQL or Redis, as far away as a network would be: it passes on at once what
 * the server sends, and holds back what is answered.
 */

export interface RelayOrder {
  readonly host: string;
  readonly port: number;
  /** How long an answer is held back: at least, because timers count whole milliseconds */
  readonly delayMs: number;
}

process.on('message', ({ host, port, delayMs }: RelayOrder) => {
  const server = createServer({ noDelay: true }, (client) => {
    const upstream = connect({ host, port, noDelay: true });
    client.pipe(upstream);
    // Timers of one duration fire in the order in which they were set.
    upstream.on('data', (chunk) => setTimeout(() => client.write(chunk), delayMs));
    upstream.on('end', () => setTimeout(() => client.end(), delayMs));
    client.on('error', () => upstream.destroy());
    upstream.on('error', () => client.destroy());
  });
  server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
});
process.on('disconnect', () => process.exit());
