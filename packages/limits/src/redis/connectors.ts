import { createConnection, type Socket } from 'node:net';
import { connect } from 'node:tls';
import { AbstractConnector, type Redis, type RedisOptions, SentinelConnector } from 'ioredis';

/*
 * Node.js reports the error that breaks a TLS stream and leaves the socket open, so the next write is a second error.
 * ioredis listens only for the first (redis/ioredis#962), and an error without a listener ends the process.
 */

/** Ends a connection with its first error, and goes on listening for others. */
function endWithError<Stream extends Socket>(stream: Stream): Stream {
  return stream.on('error', () => stream.destroy());
}

/** Connects to a server as ioredis does by default, whose own connector is not exported. */
export class ServerConnector extends AbstractConnector {
  readonly #options: RedisOptions;

  constructor(options: unknown) {
    const given = options as RedisOptions & { readonly disconnectTimeout: number };
    super(given.disconnectTimeout);
    this.#options = given;
  }

  override async connect(): Promise<Socket> {
    this.connecting = true;
    // The client may be disconnected in the same turn in which it was created.
    await undefined;
    if (!this.connecting) throw new Error('Connection is closed.');
    const { host = 'localhost', port = 6379, family, tls } = this.#options;
    const address = { host, port, ...(family !== undefined && { family }) };
    this.stream = endWithError(tls ? connect({ ...address, ...tls }) : createConnection(address));
    // The error that ioredis reports of a connection that ended before ioredis could listen
    this.stream.once('error', (error) => {
      this.firstError = error;
    });
    return this.stream;
  }
}

/** Connects to the primary that Sentinels name. The connections to the Sentinels are those of ServerConnector, too. */
export class PrimaryConnector extends SentinelConnector {
  constructor(options: unknown) {
    super(options as ConstructorParameters<typeof SentinelConnector>[0]);
    const connector = this as unknown as {
      connectToSentinel(sentinel: object, options?: RedisOptions): Redis;
    };
    const connectToSentinel = connector.connectToSentinel.bind(this);
    connector.connectToSentinel = (sentinel, own) =>
      connectToSentinel(sentinel, { ...own, Connector: ServerConnector });
  }

  override async connect(...args: Parameters<SentinelConnector['connect']>) {
    return endWithError(await super.connect(...args));
  }
}
