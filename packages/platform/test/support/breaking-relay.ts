import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** What a stream carries that is not of its protocol: a balancer's answer, or the alert of a middlebox in clear (RFC 8446, 6). */
export const INTRUSIONS = [
  Buffer.from('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n'),
  Buffer.from([21, 3, 3, 0, 2, 2, 40]),
] as const;

/** When a stream breaks: within which chunk of the server's, and how much of that arrives. */
interface Moment {
  readonly chunk: number;
  readonly part: number;
}

/** Before the handshake, in the middle of it, at its end, and after it, for a server that waits for the client's first message. */
export const MOMENTS: readonly Moment[] = [
  { chunk: 1, part: 0 },
  { chunk: 1, part: 0.5 },
  { chunk: 1, part: 1 },
  { chunk: 2, part: 1 },
];

/** Stands between a client and a server, and sends the client what is not of their protocol. It closes nothing itself. */
export interface BreakingRelay {
  readonly port: number;
  /** How many streams it has broken */
  readonly broken: number;
  /** Breaks each stream to come at that moment; undefined: none. */
  breakAt(moment: Moment | undefined, intrusion: Buffer): void;
  /** Breaks the streams that are open. */
  breakOpen(intrusion: Buffer): void;
  close(): Promise<void>;
}

export async function startBreakingRelay(target: {
  readonly host: string;
  readonly port: number;
}): Promise<BreakingRelay> {
  const clients = new Set<Socket>();
  let broken = 0;
  let next: { readonly moment: Moment; readonly intrusion: Buffer } | undefined;
  const server = createServer((client) => {
    const upstream = connect(target);
    const plan = next;
    let chunks = 0;
    clients.add(client);
    client.on('data', (chunk) => upstream.write(chunk));
    upstream.on('data', (chunk) => {
      chunks += 1;
      const last = plan?.moment.chunk ?? Number.POSITIVE_INFINITY;
      if (chunks < last) client.write(chunk);
      if (plan === undefined || chunks !== last) return;
      broken += 1;
      client.write(Buffer.concat([chunk.subarray(0, chunk.length * plan.moment.part), plan.intrusion]));
    });
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      socket.on('error', () => other.destroy());
      socket.on('close', () => {
        clients.delete(client);
        other.destroy();
      });
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    get broken() {
      return broken;
    },
    breakAt(moment, intrusion) {
      next = moment && { moment, intrusion };
    },
    breakOpen(intrusion) {
      broken += clients.size;
      for (const client of clients) client.write(intrusion);
    },
    async close() {
      const closed = once(server, 'close');
      server.close();
      for (const client of clients) client.destroy();
      await closed;
    },
  };
}
