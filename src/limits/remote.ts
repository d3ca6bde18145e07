import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { z } from 'zod';
import { listenTo } from '../database/listening.js';
import { OperatorError } from '../operator-error.js';
import type { Limiter, Standing } from './limiter.js';

/**
 * Limits in memory are known to their service alone. The command line, another process, asks after them through the
 * database that both have: NOTIFY carries the question and the answer (https://www.postgresql.org/docs/18/sql-notify.html).
 */
const CHANNEL = 'animal_store_limits';
/** Of the connection of a service that answers, by which the command line knows how many there are. */
const APPLICATION_NAME = 'animal-store limits';
/** How long the command line waits for the services that run, in milliseconds, and how often it looks. */
const ANSWER_WAIT_MS = 3_000;
const ANSWER_POLL_MS = 20;
/** How long a service that has lost its connection may take to be back, in milliseconds. */
const RECONNECT_WAIT_MS = 750;

const limits = z.object({ perMinute: z.number(), perDay: z.number().nullable() });
const question = z.object({ replyTo: z.string(), keyId: z.guid(), unban: z.boolean(), limits });
type Question = z.output<typeof question>;

export interface RemoteOptions {
  readonly databaseUrl: string;
  readonly limiter: Limiter;
  readonly warn: (error: unknown) => void;
}

/** Answers the command line's questions until closed; a broken connection is made again. */
export function answerQuestions({ databaseUrl, limiter, warn }: RemoteOptions): { close(): void } {
  return listenTo({
    databaseUrl,
    channel: CHANNEL,
    applicationName: APPLICATION_NAME,
    async onMessage(payload, client) {
      const asked = question.safeParse(parse(payload));
      if (!asked.success) return;
      const standing = await answer(limiter, asked.data);
      await client.query('SELECT pg_notify($1, $2)', [asked.data.replyTo, JSON.stringify(standing)]);
    },
    warn,
  });
}

async function answer(limiter: Limiter, { keyId, unban, limits }: Question): Promise<Standing> {
  if (unban) await limiter.unban(keyId);
  return limiter.inspect(keyId, limits);
}

/**
 * Asks every service that runs on the database how it stands with a key; lifts the key's ban first when told to.
 *
 * @throws OperatorError when a service that listens does not answer in time
 */
export async function askServices(
  databaseUrl: string,
  asked: Omit<Question, 'replyTo'>,
): Promise<Standing[]> {
  const client = new pg.Client({
    connectionString: databaseUrl,
    connectionTimeoutMillis: 2_000,
    query_timeout: 2_000,
  });
  client.on('error', () => {});
  await client.connect();
  try {
    const standings: Standing[] = [];
    const replyTo = `${CHANNEL}_${randomBytes(8).toString('hex')}`;
    // A connection that a pooler hands on may hear what another asked for.
    client.on('notification', ({ channel, payload = '' }) => {
      if (channel === replyTo) standings.push(JSON.parse(payload));
    });
    await client.query(`LISTEN ${replyTo}`);
    let listeners = await countListeners(client);
    for (const until = Date.now() + RECONNECT_WAIT_MS; listeners === 0 && Date.now() < until; ) {
      await delay(ANSWER_POLL_MS);
      listeners = await countListeners(client);
    }
    await client.query('SELECT pg_notify($1, $2)', [CHANNEL, JSON.stringify({ ...asked, replyTo })]);
    const until = Date.now() + ANSWER_WAIT_MS;
    while (standings.length < listeners && Date.now() < until) await delay(ANSWER_POLL_MS);
    if (standings.length < listeners) {
      throw new OperatorError(
        `${listeners - standings.length} running service(s) did not answer: try again.`,
      );
    }
    return standings;
  } finally {
    await client.end();
  }
}

async function countListeners(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ count: number }>(
    'SELECT count(*)::int AS count FROM pg_stat_activity WHERE application_name = $1 AND datname = current_database()',
    [APPLICATION_NAME],
  );
  return rows[0]?.count ?? 0;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
