import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** A wire to a server that a test can cut, stall and mend. */
export interface TcpProxy {
  readonly port: number;
  /** Refuses new connections and breaks those there are. */
  cut(): Promise<void>;
  /** Accepts and keeps everything, and passes nothing on. */
  stall(): void;
  /** Passes every answer of the server on so many milliseconds late. */
  slow(milliseconds: number): void;
  /** As in the beginning, on the same port. */
  restore(): Promise<void>;
  close(): Promise<void>;
}

export async function startTcpProxy(target: { host: string; port: number }): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  let isStalled = false;
  let lateMs = 0;
  const server = createServer((near) => {
    const far = connect(target);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on('data', (chunk) => {
        if (isStalled) return;
        if (lateMs > 0 && from === far) setTimeout(() => to.destroyed || to.write(chunk), lateMs);
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
  const breakAll = () => {
    for (const socket of sockets) socket.destroy();
  };
  const cut = async () => {
    if (!server.listening) return;
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    breakAll();
    await closed;
  };
  return {
    port,
    cut,
    stall() {
      isStalled = true;
    },
    slow(milliseconds) {
      lateMs = milliseconds;
    },
    async restore() {
      isStalled = false;
      lateMs = 0;
      breakAll();
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
