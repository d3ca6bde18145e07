import type { Connections, Queries } from '../connections/connections.js';
import type { ApiKey, FoundKey, ListedKey } from './api-key.js';
import { generateKey, hashKey, type KeyPrefix, toHint } from './format.js';
import type { HashedRow, KeyFilter, KeyRow, ListedRow } from './statements.js';
import { createKeyStatements, toApiKey } from './statements.js';

/** What a key is issued with. Limits of its own are for plans that have none. */
export interface NewKey {
  readonly name: string;
  readonly plan: string;
  readonly perMinute?: number | null | undefined;
  readonly perDay?: number | null | undefined;
  readonly owner?: string | null | undefined;
  readonly expiresAt?: Date | null | undefined;
  readonly scopes?: readonly string[] | undefined;
}

/** Every method may fail with a database error: see isDatabaseOutage. */
export type KeyStore = ReturnType<typeof createKeyStore>;

type KeyConnections = Queries & Pick<Connections, 'keys' | 'writes' | 'inSchema'>;
type Statements = ReturnType<typeof createKeyStatements>;

/**
 * All queries on keys, in SQL: Prisma's client would take longer to load than a command.
 *
 * @param allScopes what a key gets by default
 */
export function createKeyStore(connections: KeyConnections, prefix: KeyPrefix, allScopes: readonly string[]) {
  const sql = createKeyStatements(connections.inSchema);
  return {
    ...createLookups(connections, sql),
    ...createCounts(connections, sql),
    ...createSearches(connections, sql),
    ...createIssuer(connections, sql, prefix, allScopes),
    ...createChanges(connections, sql),
  };
}

/** What the service asks for each key that it meets. */
function createLookups({ keys }: KeyConnections, sql: Statements) {
  keys.register(sql.findByHashes, sql.findChanged);
  return {
    /** The keys with these hashes, in their order. A key that a rotation replaced expires with the overlap. */
    async findByHashes(hashes: readonly Uint8Array[]) {
      const rows = await keys.query<HashedRow>(sql.findByHashes, [hashes]);
      const found = new Map<string, FoundKey>();
      for (const row of rows) {
        const { hash, previousHash, fingerprint } = row;
        const apiKey = { ...toApiKey(row), fingerprint };
        found.set(hash.toString('hex'), apiKey);
        if (previousHash !== null) found.set(previousHash.toString('hex'), expireWithOverlap(apiKey));
      }
      return hashes.map((hash) => found.get(Buffer.from(hash).toString('hex')));
    },
    /** The ids of those keys that have changed since they were found, or are gone. */
    async findChanged(found: readonly FoundKey[]): Promise<string[]> {
      // Ids and fingerprints need no quotes. pg would take four times as long, because it checks each.
      const ids = `{${found.map(({ id }) => id)}}`;
      const fingerprints = `{${found.map(({ fingerprint }) => fingerprint)}}`;
      const rows = await keys.query<{ id: string }>(sql.findChanged, [ids, fingerprints]);
      return rows.map(({ id }) => id);
    },
  };
}

/** For the metrics, on the connections of lookups, where nothing that writes keeps them waiting. */
function createCounts({ keys }: KeyConnections, sql: Statements) {
  const countByPlan = async (text: string, ...moments: Date[]) => {
    const { rows } = await keys.pool.query<{ plan: string; count: number }>(text, moments);
    return new Map(rows.map(({ plan, count }) => [plan, count]));
  };
  return {
    /** How many keys of each plan are banned at a moment, without revoked ones. Plans without any are left out. */
    countBanned: (at: Date): Promise<ReadonlyMap<string, number>> => countByPlan(sql.countBanned, at),
    /** How many keys of each plan expire between two moments, without revoked ones. Plans without any are left out. */
    countExpiring: (from: Date, to: Date): Promise<ReadonlyMap<string, number>> =>
      countByPlan(sql.countExpiring, from, to),
  };
}

/** What the commands show. All but `find` return the oldest key first. */
function createSearches({ pool }: KeyConnections, sql: Statements) {
  const query = async (text: string, ...values: unknown[]): Promise<ListedKey[]> =>
    (await pool.query<ListedRow>(text, values)).rows.map((row) => ({
      ...toApiKey(row),
      lastUsedOn: row.lastUsedOn,
    }));
  return {
    /** The keys that fit: all of them, or the first ones. */
    list({ owner, plan, state, at = new Date(), unusedSince, after }: KeyFilter = {}, limit?: number) {
      return query(sql.list, owner, plan, state, at, unusedSince, after?.createdAt, after?.id, limit);
    },
    async find(id: string) {
      const { rows } = await pool.query<KeyRow>(sql.find, [id]);
      return rows.map(toApiKey).at(0);
    },
    /** The keys whose ids start with this, the first characters of a UUID in lower case or all of them. */
    findByIdPrefix(prefix: string) {
      // PostgreSQL orders UUIDs as their text, so a prefix is a range of the primary key.
      const range = [completeId(prefix, '0'), completeId(prefix, 'f')];
      return query(sql.selectListed('id BETWEEN $1 AND $2'), ...range);
    },
    /** The keys that start with this, a whole hint. */
    findByHint: (hint: string) => query(sql.selectListed('hint = $1'), hint),
    findByOwner: (owner: string) => query(sql.selectListed('owner = $1'), owner),
  };
}

/** Runs a statement that changes keys, all or none. Its first parameter is their ids. */
const createUpdate =
  ({ pool }: KeyConnections) =>
  /** @returns the changed keys in the order of the ids, without ids that no key has */
  async (ids: readonly string[], text: string, ...values: unknown[]): Promise<ApiKey[]> => {
    const { rows } = await pool.query<KeyRow>(text, [ids, ...values]);
    const byId = new Map(rows.map((row) => [row.id, toApiKey(row)]));
    return ids.flatMap((id) => byId.get(id) ?? []);
  };

function createIssuer(
  connections: KeyConnections,
  sql: Statements,
  prefix: KeyPrefix,
  allScopes: readonly string[],
) {
  const update = createUpdate(connections);
  return {
    /** Issues a key, by default with all scopes and a random id. `key` is the only copy that there will ever be. */
    async create(input: NewKey, id?: string) {
      const { name, owner, expiresAt, scopes = allScopes, plan, perMinute, perDay } = input;
      const key = generateKey(prefix);
      const columns = [
        name,
        owner,
        expiresAt,
        scopes,
        plan,
        perMinute,
        perDay,
        hashKey(key),
        toHint(key),
        id,
      ];
      const [row] = (await connections.pool.query<KeyRow>(sql.insert, columns)).rows;
      if (row === undefined) throw new Error('The key was not stored: a trigger of api_keys leaves it out');
      return { key, apiKey: toApiKey(row) };
    },
    /**
     * Replaces keys with new ones, all or none. An old key works until `overlapEndsAt`, or ends at once if that is left out;
     * an old key of an earlier rotation ends in any case. Keys that do not exist or are revoked are left out. With an overlap,
     * all are left out while the overlap of an earlier rotation lasts, unless the rotation is to be done `again`: a repetition
     * must not end a key in use.
     */
    async rotateAll(ids: readonly string[], overlapEndsAt?: Date, again = false) {
      const issued = new Map(ids.map((id) => [id, generateKey(prefix)]));
      const keys = [...issued.values()];
      const columns = [overlapEndsAt, keys.map(hashKey), keys.map(toHint), again];
      const rotated = await update([...issued.keys()], sql.rotate, ...columns);
      return rotated.map((apiKey) => ({ key: issued.get(apiKey.id) ?? '', apiKey }));
    },
  };
}

function createChanges(connections: KeyConnections, sql: Statements) {
  const { writes } = connections;
  const updateAll = createUpdate(connections);
  /** Undefined where there is no such key */
  const update = async (id: string, assignments: string, ...values: unknown[]) =>
    (await updateAll([id], sql.update(assignments), ...values)).at(0);
  return {
    /** Ends keys, all or none. One that is already revoked keeps its original time. */
    revokeAll: (ids: readonly string[], at: Date) => updateAll(ids, sql.revoke, at),
    setPlanAll: (ids: readonly string[], { plan, perMinute, perDay }: Omit<NewKey, 'name'>) =>
      updateAll(ids, sql.update('plan = $2, per_minute = $3, per_day = $4'), plan, perMinute, perDay),
    setScopesAll: (ids: readonly string[], scopes: readonly string[]) =>
      updateAll(ids, sql.update('scopes = $2'), scopes),
    setOwner: (id: string, owner: string | null) => update(id, 'owner = $2', owner),
    /** For the service: of its connections, only those that write may be left waiting for a commit. */
    async revoke(id: string, at: Date) {
      await writes.pool.query(sql.revoke, [[id], at]);
    },
    /**
     * Bans a key from `agoMs` ago on, by the clock of the database, unless a ban was running then: two nodes that ban at the
     * same moment start one ban.
     */
    async ban(id: string, seconds: number, agoMs = 0) {
      await writes.pool.query(sql.ban, [id, seconds, agoMs / 1000]);
    },
    /**
     * Bans a key for so many seconds from now on, in place of a ban that is running. A further ban lasts twice as long as
     * `banSeconds`, which the database bounds.
     */
    banFor: (id: string, seconds: number, banSeconds: number) =>
      update(id, 'banned_until = now() + make_interval(secs => $2), ban_seconds = $3', seconds, banSeconds),
    /** Lifts the ban of a key and forgets its length, so that the next one is not doubled. */
    unban: (id: string) => update(id, 'banned_until = NULL, ban_seconds = NULL'),
  };
}

function expireWithOverlap(apiKey: FoundKey): FoundKey {
  const { expiresAt, previousExpiresAt } = apiKey;
  if (previousExpiresAt === null || (expiresAt !== null && expiresAt < previousExpiresAt)) return apiKey;
  return { ...apiKey, expiresAt: previousExpiresAt };
}

/** The UUID that starts with these characters and goes on with one digit. */
export function completeId(prefix: string, digit: string): string {
  return prefix + '________-____-____-____-____________'.slice(prefix.length).replaceAll('_', digit);
}
