import type { Database } from '../database/client.js';
import type { Plan } from '../limits/plans.js';
import { generateKey, hashKey, type KeyPrefix, toHint } from './format.js';
import { SCOPES, type Scope } from './scopes.js';

/** A stored key: everything but the key itself. */
export interface ApiKey {
  readonly id: string;
  readonly name: string;
  /** The key's first characters */
  readonly hint: string;
  readonly plan: Plan;
  /** Its own limits, for enterprise only */
  readonly perMinute: number | null;
  readonly perDay: number | null;
  /** One or more. A later version may have added some that this one does not know. */
  readonly scopes: readonly string[];
  readonly createdAt: Date;
  readonly expiresAt: Date | null;
  /** Until when the key that a rotation replaced by this one still works */
  readonly previousExpiresAt: Date | null;
  readonly revokedAt: Date | null;
  /** The end of the last ban */
  readonly bannedUntil: Date | null;
  /** The length of the last ban */
  readonly banSeconds: number | null;
}

/** A plan and, for enterprise only, the key's own limits. */
export type PlanChoice = Pick<ApiKey, 'plan' | 'perMinute' | 'perDay'>;

/** All queries on keys. Every method may fail with a database error: see isDatabaseOutage. */
export interface KeyStore {
  /** The keys with these hashes, in their order. One that a rotation replaced expires with the overlap. */
  findByHashes(hashes: readonly Uint8Array[]): Promise<(ApiKey | undefined)[]>;
  /** Issues a key, by default with all scopes. `key` is the only copy that there will ever be. */
  create(
    input: PlanChoice & { name: string; expiresAt: Date | null; scopes?: readonly Scope[] },
  ): Promise<{ apiKey: ApiKey; key: string }>;
  /** All keys, oldest first. */
  list(): Promise<ApiKey[]>;
  find(id: string): Promise<ApiKey | undefined>;
  /** How many keys are banned at a moment, without those that are revoked. */
  countBanned(at: Date): Promise<number>;
  /** The keys whose ids start with this, the first characters of a UUID in lower case or all of them, oldest first. */
  findByIdPrefix(prefix: string): Promise<ApiKey[]>;
  /**
   * Replaces the key with a new one. The old one works until `overlapEndsAt`, or ends at once if that is left out; an
   * old key of an earlier rotation ends in any case. Resolves with undefined when there is no such key, or it is
   * revoked.
   */
  rotate(id: string, overlapEndsAt?: Date): Promise<{ apiKey: ApiKey; key: string } | undefined>;
  /** Ends a key. One that is already revoked keeps its original time. Resolves with undefined when there is none. */
  revoke(id: string, at: Date): Promise<ApiKey | undefined>;
  setPlan(id: string, choice: PlanChoice): Promise<ApiKey | undefined>;
  setScopes(id: string, scopes: readonly Scope[]): Promise<ApiKey | undefined>;
  /**
   * Bans a key from `startsAt` on, unless a ban is running then: two nodes that ban at the same moment start one ban.
   */
  ban(id: string, startsAt: Date, seconds: number): Promise<void>;
  /** Lifts the ban of a key and forgets its length, so that the next one is not doubled. */
  unban(id: string): Promise<ApiKey | undefined>;
}

type KeyRow = ApiKey & { readonly hash: Buffer; readonly previousHash: Buffer | null };

const FIND_BY_HASHES = {
  name: 'keys-find-by-hashes',
  text: `
    SELECT id, name, start AS hint, plan, per_minute AS "perMinute", per_day AS "perDay", scopes,
      created_at AS "createdAt", expires_at AS "expiresAt", previous_expires_at AS "previousExpiresAt", revoked_at AS "revokedAt",
      banned_until AS "bannedUntil", ban_seconds AS "banSeconds", hash, previous_hash AS "previousHash"
    FROM api_keys WHERE hash = ANY ($1::bytea[]) OR previous_hash = ANY ($1::bytea[])`,
};

export function createKeyStore(database: Database, prefix: KeyPrefix): KeyStore {
  const { prisma } = database;
  const omit = { hash: true, previousHash: true } as const;
  const find = async (id: string) => (await prisma.apiKey.findUnique({ where: { id }, omit })) ?? undefined;
  const update = async (id: string, data: object) => {
    const [changed] = await prisma.apiKey.updateManyAndReturn({ where: { id }, data, omit });
    return changed;
  };
  return {
    find,
    async findByHashes(hashes) {
      const rows = await database.keys.query<KeyRow>(FIND_BY_HASHES, [hashes]);
      const found = new Map<string, ApiKey>();
      for (const { hash, previousHash, ...apiKey } of rows) {
        found.set(hash.toString('hex'), apiKey);
        if (previousHash !== null) found.set(previousHash.toString('hex'), expireWithOverlap(apiKey));
      }
      return hashes.map((hash) => found.get(Buffer.from(hash).toString('hex')));
    },
    async create({ name, expiresAt, scopes = SCOPES, plan, perMinute, perDay }) {
      const key = generateKey(prefix);
      const data = { name, expiresAt, scopes: [...scopes], plan, perMinute, perDay, ...toColumns(key) };
      return { key, apiKey: await prisma.apiKey.create({ data, omit }) };
    },
    list: () => prisma.apiKey.findMany({ orderBy: { createdAt: 'asc' }, omit }),
    findByIdPrefix(prefix) {
      // PostgreSQL orders UUIDs as their text, so a prefix is a range of the primary key.
      const where = { id: { gte: completeId(prefix, '0'), lte: completeId(prefix, 'f') } };
      return prisma.apiKey.findMany({ where, orderBy: { createdAt: 'asc' }, omit });
    },
    async rotate(id, overlapEndsAt) {
      const key = generateKey(prefix);
      const { hash, hint } = toColumns(key);
      const until = overlapEndsAt ?? null;
      const rotated = await prisma.$executeRaw`
        UPDATE api_keys
        SET previous_hash = CASE WHEN ${until}::timestamptz IS NOT NULL THEN hash END,
          previous_expires_at = ${until}::timestamptz, hash = ${hash}, start = ${hint}
        WHERE id = ${id}::uuid AND revoked_at IS NULL`;
      const apiKey = rotated === 0 ? undefined : await find(id);
      return apiKey && { key, apiKey };
    },
    async revoke(id, at) {
      await prisma.apiKey.updateMany({ where: { id, revokedAt: null }, data: { revokedAt: at } });
      return find(id);
    },
    setPlan: (id, { plan, perMinute, perDay }) => update(id, { plan, perMinute, perDay }),
    setScopes: (id, scopes) => update(id, { scopes }),
    async ban(id, startsAt, seconds) {
      const isNotBanned = { OR: [{ bannedUntil: null }, { bannedUntil: { lte: startsAt } }] };
      const bannedUntil = new Date(startsAt.getTime() + seconds * 1000);
      await prisma.apiKey.updateMany({
        where: { id, ...isNotBanned },
        data: { bannedUntil, banSeconds: seconds },
      });
    },
    countBanned: (at) => prisma.apiKey.count({ where: { bannedUntil: { gt: at }, revokedAt: null } }),
    unban: (id) => update(id, { bannedUntil: null, banSeconds: null }),
  };
}

/** Whether a key is neither revoked nor expired at a moment, in Unix milliseconds. */
export function isActive({ revokedAt, expiresAt }: ApiKey, now: number): boolean {
  return revokedAt === null && (expiresAt === null || expiresAt.getTime() > now);
}

function expireWithOverlap(apiKey: ApiKey): ApiKey {
  const { expiresAt, previousExpiresAt } = apiKey;
  if (previousExpiresAt === null || (expiresAt !== null && expiresAt < previousExpiresAt)) return apiKey;
  return { ...apiKey, expiresAt: previousExpiresAt };
}

/** The UUID that starts with these characters and goes on with one digit. */
export function completeId(prefix: string, digit: string): string {
  return prefix + '________-____-____-____-____________'.slice(prefix.length).replaceAll('_', digit);
}

function toColumns(key: string) {
  return { hash: new Uint8Array(hashKey(key)), hint: toHint(key) };
}
