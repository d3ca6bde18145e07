import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** Sits between the service and a server, so that a test can break the connection in different ways. */
export interface TcpProxy {
  readonly port: number;
  /** Rejects new connections and breaks existing ones. */
  cut(): Promise<void>;
  /** Accepts connections and data, and forwards nothing. */
  stall(): void;
  /** Delays everything the server sends. */
  slow(delayMs: number): void;
  /** Forwards everything again, on the same port. Existing connections break. */
  restore(): Promise<void>;
  close(): Promise<void>;
}

export async function startTcpProxy(target: { host: string; port: number }): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  let isStalled = false;
  let delayMs = 0;
  const server = createServer((client) => {
    const upstream = connect(target);
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from);
      from.on('data', (chunk) => {
        if (isStalled) return;
        if (delayMs > 0 && from === upstream) setTimeout(() => to.destroyed || to.write(chunk), delayMs);
        else to.write(chunk);
      });
      from.on('error', () => to.destroy());
      from.on('close', () => {
        sockets.delete(from);
        to.destroy();
      });
    }
  });
  await listen(server, 0);
  const { port } = server.address() as AddressInfo;
  const breakConnections = () => {
    for (const socket of sockets) socket.destroy();
  };
  const cut = async () => {
    if (!server.listening) return;
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    breakConnections();
    await closed;
  };
  return {
    port,
    cut,
    stall() {
      isStalled = true;
    },
    slow(wantedMs) {
      delayMs = wantedMs;
    },
    async restore() {
      isStalled = false;
      delayMs = 0;
      breakConnections();
      if (!server.listening) await listen(server, port);
    },
    close: cut,
  };
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
}
