import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { listenTo } from '../database/listening.js';
import { openClient } from '../limits/redis-client.js';

/**
 * Where nodes hear that a key has changed: in Redis where there is one, else in PostgreSQL. Word of a change only makes
 * it felt sooner; nothing depends on its arrival, because what a node believes of a key ends by itself within a second.
 */
const CHANNEL = 'animal_store_keys';
/** How long a change waits to be told of, in milliseconds. */
const PUBLISH_WAIT_MS = 1_000;

/** Tells every node that a key has changed. Never rejects: a change that goes untold is felt a second later. */
export async function publish(
  { redisUrls, pool }: { readonly redisUrls: readonly string[]; readonly pool: pg.Pool },
  keyId: string,
): Promise<void> {
  const told =
    redisUrls.length > 0
      ? publishInRedis(redisUrls, keyId)
      : pool.query('SELECT pg_notify($1, $2)', [CHANNEL, keyId]);
  await Promise.race([told, delay(PUBLISH_WAIT_MS, undefined, { ref: false })]).catch(() => {});
}

async function publishInRedis(redisUrls: readonly string[], keyId: string): Promise<void> {
  const client = openClient(redisUrls);
  client.on('error', () => {});
  try {
    await once(client, 'ready', { signal: AbortSignal.timeout(PUBLISH_WAIT_MS) });
    await client.publish(CHANNEL, keyId);
  } finally {
    client.disconnect();
  }
}

export interface SubscribeOptions {
  readonly redisUrls: readonly string[];
  readonly databaseUrl: string;
  readonly onChange: (keyId: string) => void;
  readonly warn: (error: unknown) => void;
}

/** Hears of changed keys until closed. A subscription that is lost is made again. */
export function subscribe({ redisUrls, databaseUrl, onChange, warn }: SubscribeOptions): { close(): void } {
  if (redisUrls.length === 0) {
    return listenTo({
      databaseUrl,
      channel: CHANNEL,
      applicationName: 'animal-store keys',
      onMessage: onChange,
      warn,
    });
  }
  const client = openClient(redisUrls);
  // The limiter, on the same Redis, logs when it is away.
  client.on('error', () => {});
  client.on('ready', () => void client.subscribe(CHANNEL).catch(warn));
  client.on('message', (_channel: string, keyId: string) => onChange(keyId));
  return { close: () => client.disconnect() };
}
