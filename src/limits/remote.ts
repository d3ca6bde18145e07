import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { z } from 'zod';
import type { Limiter, Standing } from './limiter.js';

/**
 * Limits in memory are known to their service alone. The command line, another process, asks after them through the
 * database that both have: NOTIFY carries the question and the answer (https://www.postgresql.org/docs/18/sql-notify.html).
 */
const CHANNEL = 'animal_store_limits';
/** How long the command line waits for the services that run, in milliseconds. */
const ANSWER_WAIT_MS = 500;
/** Between attempts to listen again, in milliseconds. */
const RECONNECT_DELAY_MS = 1_000;

const limits = z.object({ perMinute: z.number(), perDay: z.number().nullable() });
const question = z.object({ replyTo: z.string(), keyId: z.uuid(), unban: z.boolean(), limits });
type Question = z.output<typeof question>;

export interface RemoteOptions {
  readonly databaseUrl: string;
  readonly limiter: Limiter;
  readonly warn: (error: unknown) => void;
}

/** Answers the command line's questions until closed; a broken connection is made again. */
export function answerQuestions({ databaseUrl, limiter, warn }: RemoteOptions): { close(): Promise<void> } {
  const closing = new AbortController();
  let client: pg.Client | undefined;
  const listen = async () => {
    while (!closing.signal.aborted) {
      client = new pg.Client({ connectionString: databaseUrl, keepAlive: true });
      await hear(client, (asked) => answer(limiter, asked)).catch(warn);
      await delay(RECONNECT_DELAY_MS, undefined, { signal: closing.signal }).catch(() => {});
    }
  };
  const listening = listen();
  return {
    async close() {
      closing.abort();
      await client?.end().catch(warn);
      await listening;
    },
  };
}

/** Listens until the connection ends. */
async function hear(client: pg.Client, reply: (asked: Question) => Promise<Standing>): Promise<void> {
  const ended = new Promise<void>((resolve) => client.once('end', resolve));
  client.on('error', () => {});
  client.on('notification', async ({ payload = '' }) => {
    const asked = question.safeParse(parse(payload));
    if (!asked.success) return;
    const standing = await reply(asked.data);
    await client
      .query('SELECT pg_notify($1, $2)', [asked.data.replyTo, JSON.stringify(standing)])
      .catch(() => {});
  });
  await client.connect();
  await client.query(`LISTEN ${CHANNEL}`);
  await ended;
}

async function answer(limiter: Limiter, { keyId, unban, limits }: Question): Promise<Standing> {
  if (unban) await limiter.unban(keyId);
  return limiter.inspect(keyId, limits);
}

/** Asks every service that runs on the database how it stands with a key; lifts the key's ban first when told to. */
export async function askServices(
  databaseUrl: string,
  asked: Omit<Question, 'replyTo'>,
): Promise<Standing[]> {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  try {
    const standings: Standing[] = [];
    const replyTo = `${CHANNEL}_${randomBytes(8).toString('hex')}`;
    client.on('notification', ({ payload = '' }) => standings.push(JSON.parse(payload)));
    await client.query(`LISTEN ${replyTo}`);
    await client.query('SELECT pg_notify($1, $2)', [CHANNEL, JSON.stringify({ ...asked, replyTo })]);
    await delay(ANSWER_WAIT_MS);
    return standings;
  } finally {
    await client.end();
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
