import pg from 'pg';
import { readCode } from './outage.js';

/** SQLSTATE too_many_connections: of the server, the database or the role. */
const TOO_MANY_CONNECTIONS = '53300';
/** How long a pool goes on with the connections that it has after it was refused a further one. */
const RETRY_AFTER_MS = 2_000;

type Callback = Parameters<pg.Pool['connect']>[0];

/**
 * A pool of pg that goes on with the connections that it has where the server allows no further one. Whoever has asked for
 * one then waits for another's, and gets the refusal only if the pool has none.
 */
export class Pool extends pg.Pool {
  /** With how many connections the pool was opened */
  readonly size: number;
  /** Server processes that keep a place in the pool, although it has closed their connections */
  orphaned = 0;
  /** Whether the pool may open a further connection now */
  mayGrow = () => true;
  /** Called when the server allows no further connection */
  onRefused: (error: Error) => void = () => {};
  #borrowed = 0;
  #retryAtMs = Number.NEGATIVE_INFINITY;

  constructor(config: pg.PoolConfig & { readonly max: number }) {
    super({ ...config, min: 1 });
    this.size = config.max;
    this.on('acquire', () => (this.#borrowed += 1));
    this.on('release', () => (this.#borrowed -= 1));
    // pg reads it whenever somebody asks for a connection.
    Object.defineProperty(this.options, 'max', { get: () => this.#readMax() });
  }

  /** Connections that work, idle or in use */
  get held(): number {
    return this.idleCount + this.#borrowed;
  }

  override connect(): Promise<pg.PoolClient>;
  override connect(callback: Callback): void;
  override connect(callback?: Callback) {
    if (callback === undefined)
      return new Promise((resolve, reject) => {
        this.connect((error, client) => (client === undefined ? reject(error) : resolve(client)));
      });
    super.connect((error, client, release) => {
      if (error === undefined || readCode(error) !== TOO_MANY_CONNECTIONS) {
        callback(error, client, release);
        return;
      }
      this.#retryAtMs = performance.now() + RETRY_AFTER_MS;
      this.onRefused(error);
      if (this.held > 0) this.connect(callback);
      else callback(error, client, release);
    });
    return undefined;
  }

  #readMax(): number {
    const grows = performance.now() >= this.#retryAtMs && this.mayGrow();
    return Math.min(grows ? this.size : Math.max(1, this.held), this.size - this.orphaned);
  }
}
