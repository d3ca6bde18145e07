import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';

/** How long a connection may take to be made, and a query on it, and between attempts, in milliseconds. */
const CONNECT_TIMEOUT_MS = 2_000;
const QUERY_TIMEOUT_MS = 2_000;
const RECONNECT_DELAY_MS = 250;

export interface ListenOptions {
  readonly databaseUrl: string;
  /** An SQL identifier in lower case */
  readonly channel: string;
  /** Names the connection in pg_stat_activity, whatever the URL calls the others; without quotes */
  readonly applicationName: string;
  /** Given the connection too, to answer on; what it throws or rejects with is told to `warn` */
  readonly onMessage: (payload: string, client: pg.Client) => unknown;
  /** Told of the first failure of an outage */
  readonly warn: (error: unknown) => void;
}

/**
 * Hears what is sent to a channel of PostgreSQL until closed; a connection that breaks is made again.
 * https://www.postgresql.org/docs/18/sql-notify.html
 */
export function listenTo(options: ListenOptions): { close(): void } {
  const closing = new AbortController();
  void keepListening(options, closing.signal);
  // Not waited for: a connection that is being made, or stalls, would hold the end of the service.
  return { close: () => closing.abort() };
}

async function keepListening(options: ListenOptions, closing: AbortSignal): Promise<void> {
  let isWarned = false;
  while (!closing.aborted) {
    const client = new pg.Client({
      connectionString: options.databaseUrl,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: QUERY_TIMEOUT_MS,
      keepAlive: true,
    });
    const end = () => void client.end().catch(() => {});
    closing.addEventListener('abort', end, { once: true });
    try {
      await listen(client, options);
      isWarned = false;
    } catch (error) {
      if (!isWarned && !closing.aborted) options.warn(error);
      isWarned = true;
    }
    closing.removeEventListener('abort', end);
    end();
    await delay(RECONNECT_DELAY_MS, undefined, { signal: closing }).catch(() => {});
  }
}

/** Listens until the connection ends. */
async function listen(
  client: pg.Client,
  { applicationName, channel, onMessage, warn }: ListenOptions,
): Promise<void> {
  const ended = new Promise<void>((resolve) => client.once('end', resolve));
  client.on('error', () => {});
  client.on('notification', async ({ channel: heard, payload = '' }) => {
    try {
      if (heard === channel) await onMessage(payload, client);
    } catch (error) {
      warn(error);
    }
  });
  await client.connect();
  await client.query(`LISTEN ${channel}`);
  // Last, for whoever looks for the name wants to be heard.
  await client.query(`SET application_name = '${applicationName}'`);
  await ended;
}
