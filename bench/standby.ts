import pg from 'pg';
import { withClient } from './postgres.js';

/** What the server asks for by `synchronous_standby_names`. */
const NAME = 'bench_standby';
const XLOG_DATA = 'w'.charCodeAt(0);
const HEADER_BYTES = 25;

/** What a replication takes of pg's connection, which its types lack. */
interface Replication {
  readonly connection: {
    on(event: 'copyData', listener: (message: { readonly chunk: Buffer }) => void): void;
    once(event: 'replicationStart', listener: () => void): void;
    query(text: string): void;
    sendCopyFromChunk(chunk: Buffer): void;
  };
}

/**
 * A synchronous standby that says of everything that it has it after a delay, and keeps nothing: what a commit waits for
 * when a standby is so far away. It speaks PostgreSQL's streaming replication protocol (documentation, 54.4).
 *
 * @param url of a superuser
 */
export async function startStandby(url: string, delayMs: number): Promise<{ close(): Promise<void> }> {
  const config = { connectionString: url, application_name: NAME, replication: 'true' };
  const client = new pg.Client(config);
  const { connection } = client as unknown as Replication;
  client.on('error', () => {});
  await client.connect();
  const { rows } = await client.query<{ xlogpos: string }>('IDENTIFY_SYSTEM');
  const acknowledge = (position: bigint) => {
    const message = Buffer.alloc(34);
    message.write('r');
    for (const at of [1, 9, 17]) message.writeBigUInt64BE(position, at);
    connection.sendCopyFromChunk(message);
  };
  let isClosed = false;
  connection.on('copyData', ({ chunk }) => {
    if (chunk[0] !== XLOG_DATA) return;
    const end = chunk.readBigUInt64BE(1) + BigInt(chunk.length - HEADER_BYTES);
    setTimeout(() => isClosed || acknowledge(end), delayMs);
  });
  await new Promise<void>((resolve) => {
    connection.once('replicationStart', resolve);
    connection.query(`START_REPLICATION PHYSICAL ${rows[0]?.xlogpos}`);
  });
  const require = (names: string) =>
    withClient(url, async (admin) => {
      await admin.query(`ALTER SYSTEM SET synchronous_standby_names = '${names}'`);
      await admin.query('SELECT pg_reload_conf()');
    });
  await require(NAME);
  return {
    async close() {
      await require('');
      isClosed = true;
      await client.end();
    },
  };
}
