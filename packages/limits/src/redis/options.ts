import type { ClientContext, Redis, RedisOptions, Result } from 'ioredis';
import { ServerConnector } from './connectors.js';

declare module 'ioredis' {
  interface RedisCommander<Context extends ClientContext> {
    /** The script of createConsumeScript, with the number of keys, the keys and the calls */
    consumeLimits(keyCount: number, ...keysAndCalls: string[]): Result<string, Context>;
  }
}

export interface RedisClientOptions {
  /** The script of createConsumeScript */
  readonly script: string;
  readonly onReady: () => void;
  readonly onClose: () => void;
  /** Called with the error that prevents or breaks a connection to one node or to all nodes */
  readonly onError: (error: Error) => void;
}

export interface RedisConnectionOptions extends RedisClientOptions {
  /** One: Redis or Valkey, or Sentinels. Several: nodes of a cluster. Called again when connections fail */
  readonly readUrls: () => readonly string[];
}

export const RECONNECT_DELAY_MS = 200;

/*
 * Everything that ioredis does to rescue a command is turned off. A limit is decided now, by Redis or else by the memory
 * of this process. A command that is sent late or twice would count a request a second time.
 */
export const COMMON_OPTIONS = {
  enableOfflineQueue: false,
  // The trial of the circuit breaker shows more than the state that a server reports, such as the reason of a failure.
  enableReadyCheck: false,
};

export const CONNECTION_OPTIONS = {
  autoResendUnfulfilledCommands: false,
  // With 1, ioredis never settles the commands that a lost connection left unanswered. With 0 they are all rejected when
  // the connection closes.
  maxRetriesPerRequest: 0,
  // Attempts to reach a vanished host get no response, so they must time out: only a new attempt notices that the host is back.
  connectTimeout: 1_000,
  disconnectTimeout: 100,
  Connector: ServerConnector,
} satisfies RedisOptions;

/** The command `consumeLimits` of a connection */
export const toScripts = (lua: string) => ({ scripts: { consumeLimits: { lua } } });

/** For a single server, and for the primary that Sentinels name. */
export const toServerOptions = () =>
  ({ ...COMMON_OPTIONS, ...CONNECTION_OPTIONS, retryStrategy: createRetryStrategy() }) satisfies RedisOptions;

/**
 * An attempt each 200 ms at most, and the first at once: a server that closes idle connections, as those of Heroku and Azure
 * do, keeps no request waiting for longer than it may.
 */
function createRetryStrategy(): () => number {
  let attemptAtMs = Number.NEGATIVE_INFINITY;
  return () => {
    const nowMs = performance.now();
    attemptAtMs = Math.max(nowMs, attemptAtMs + RECONNECT_DELAY_MS);
    return attemptAtMs - nowMs;
  };
}

/**
 * A server may lack the database of the URL, or the user the right to it. ioredis reports that and goes on in database 0,
 * which belongs to others. So the connection is ended, and tried again like a refused one.
 */
export function endInOtherDatabase(client: Redis, error: Error): Error {
  const { command }: { command?: { name: string } } = error as object;
  if (command?.name !== 'select') return error;
  client.disconnect(true);
  return new Error(`database ${client.options.db}: ${error.message}`);
}
