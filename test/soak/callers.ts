import type { Environment } from '@animal-store/platform/testing';
import pg from 'pg';
import { generateKey, hashKey } from '../../packages/platform/src/keys/format.js';
import { runKeys } from '../support/programs.js';
import { pick, randomInteger, randomOfFaults } from './random.js';

/** What SQL has made of a key for some time. By performance.now() */
interface Version {
  readonly perMinute: number;
  readonly isRevoked: boolean;
  /** When it was sent */
  readonly from: number;
  /** When its successor was acknowledged */
  until: number;
}

/** An API key with limits that no other has, so that headers of another caller's are recognised. */
export interface Caller {
  readonly name: string;
  readonly key: string;
  readonly perDay: number;
  readonly isLimited: boolean;
  readonly versions: Version[];
}

export interface Callers {
  /** With limits that are never reached */
  readonly ample: readonly Caller[];
  readonly limited: Caller;
  /** With keys that they may revoke themselves, and that are used for nothing else */
  readonly endable: readonly Caller[];
}

const ENDABLE_COUNT = 100;
const AMPLE_COUNT = 1_000;
/** Of ample callers. Above it no request is denied. */
const MIN_PER_MINUTE = 10_000_000;
const LIMITED = { perMinute: 30, perDay: 3_000 };
/** What the contract promises for a change of a key */
const FELT_WITHIN_MS = 2_000;

export async function createCallers(environment: Environment): Promise<Callers> {
  const limits = ['--per-minute', `${LIMITED.perMinute}`, '--per-day', `${LIMITED.perDay}`];
  const args = ['--name', 'limited', '--plan', 'enterprise', ...limits];
  const issued = await runKeys(environment, 'create', ...args);
  const added = Array.from({ length: AMPLE_COUNT + ENDABLE_COUNT }, (_, index) => {
    const name = index < AMPLE_COUNT ? `ample ${index}` : `endable ${index - AMPLE_COUNT}`;
    return toCaller(name, generateKey('as_test_'), MIN_PER_MINUTE + index, 100_000_000 + index);
  });
  const client = new pg.Client(environment.DATABASE_URL);
  await client.connect();
  await client.query(
    `INSERT INTO api_keys (name, hash, hint, plan, per_minute, per_day)
    SELECT name, hash, 'as_test_0000', 'enterprise', $3 + n - 1, per_day
    FROM unnest($1::text[], $2::bytea[], $4::int[]) WITH ORDINALITY AS given (name, hash, per_day, n)`,
    [
      added.map(({ name }) => name),
      added.map(({ key }) => hashKey(key)),
      MIN_PER_MINUTE,
      added.map(({ perDay }) => perDay),
    ],
  );
  await client.end();
  return {
    ample: added.slice(0, AMPLE_COUNT),
    limited: toCaller('limited', issued.key, LIMITED.perMinute, LIMITED.perDay),
    endable: added.slice(AMPLE_COUNT),
  };
}

function toCaller(name: string, key: string, perMinute: number, perDay: number): Caller {
  const version = { perMinute, isRevoked: false, from: 0, until: Number.POSITIVE_INFINITY };
  return { name, key, perDay, isLimited: name === 'limited', versions: [version] };
}

/** Changes the limit of a caller by SQL, and revokes its key or makes it valid again. */
export async function changeKey(
  client: pg.Client,
  caller: Caller,
  isRevoked = randomOfFaults() < 0.3,
): Promise<void> {
  const perMinute = randomInteger(
    MIN_PER_MINUTE + AMPLE_COUNT + ENDABLE_COUNT,
    2 * MIN_PER_MINUTE,
    randomOfFaults,
  );
  const next = { perMinute, isRevoked, from: performance.now(), until: Number.POSITIVE_INFINITY };
  caller.versions.push(next);
  await client.query(
    'UPDATE api_keys SET per_minute = $2, revoked_at = CASE WHEN $3 THEN now() END WHERE hash = $1',
    [hashKey(caller.key), perMinute, isRevoked],
  );
  for (const version of caller.versions) {
    if (version !== next) version.until = Math.min(version.until, performance.now());
  }
}

export function changeSomeKey(client: pg.Client, { ample }: Callers): Promise<void> {
  return changeKey(client, pick(ample, randomOfFaults));
}

/**
 * Notes that the revocation of a key is about to be sent by its caller. Returns what to call once it is acknowledged: from
 * then on, the process that has answered refuses the key.
 */
export function endKey({ versions }: Caller): () => void {
  const [valid] = versions;
  const perMinute = valid?.perMinute ?? 0;
  versions.push({ perMinute, isRevoked: true, from: performance.now(), until: Number.POSITIVE_INFINITY });
  return () => {
    if (valid !== undefined) valid.until = Math.min(valid.until, performance.now() - FELT_WITHIN_MS);
  };
}

/** Those that a request may have met which has just been answered. */
export function possibleVersions({ versions }: Caller, sentAt: number): readonly Version[] {
  return versions.filter(({ until }) => until > sentAt - FELT_WITHIN_MS);
}
