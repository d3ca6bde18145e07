import type { Database } from '../database/client.js';
import type { Plan } from '../database/generated/enums.js';
import { generateKey, hashKey, type KeyPrefix, keyStart } from './format.js';

export type { Plan };

/** A key as it is stored: everything but the key itself. */
export interface ApiKey {
  readonly id: string;
  readonly name: string;
  /** The key's first characters */
  readonly start: string;
  readonly plan: Plan;
  /** Own limits, for enterprise alone */
  readonly perMinute: number | null;
  readonly perDay: number | null;
  readonly createdAt: Date;
  readonly expiresAt: Date | null;
  /** Until when the key works that a rotation replaced by this one */
  readonly previousExpiresAt: Date | null;
  readonly revokedAt: Date | null;
}

/** A plan with what it needs: enterprise brings its own two limits, the others none. */
export type PlanChoice = Pick<ApiKey, 'plan' | 'perMinute' | 'perDay'>;

export interface KeyStore {
  /** The key with this hash; found by the one that a rotation replaced, it expires with the overlap. */
  findByHash(hash: Uint8Array): Promise<ApiKey | undefined>;
  /** Issues a key. `key` is the only copy of it there will ever be. */
  create(
    wanted: PlanChoice & { name: string; expiresAt: Date | null },
  ): Promise<{ apiKey: ApiKey; key: string }>;
  /** All keys, oldest first. */
  list(): Promise<ApiKey[]>;
  find(id: string): Promise<ApiKey | undefined>;
  /**
   * A new key in place of the old one, which works until `oldUntil`, or no longer when that is left out. A key that an
   * earlier rotation left in force ends. Undefined when there is none that is not revoked.
   */
  rotate(id: string, oldUntil?: Date): Promise<{ apiKey: ApiKey; key: string } | undefined>;
  /** Ends a key; one that is revoked already keeps its first time. Undefined when there is none. */
  revoke(id: string, at: Date): Promise<ApiKey | undefined>;
  setPlan(id: string, choice: PlanChoice): Promise<ApiKey | undefined>;
}

/** The only place with queries on keys. Every method fails as the database does; see isDatabaseOutage. */
export function createKeyStore({ prisma }: Database, prefix: KeyPrefix): KeyStore {
  const omit = { hash: true, previousHash: true } as const;
  const find = async (id: string) => (await prisma.apiKey.findUnique({ where: { id }, omit })) ?? undefined;
  const update = async (id: string, data: object) => {
    const [changed] = await prisma.apiKey.updateManyAndReturn({ where: { id }, data, omit });
    return changed;
  };
  return {
    find,
    async findByHash(bytes) {
      const hash = new Uint8Array(bytes);
      const where = { OR: [{ hash }, { previousHash: hash }] };
      const found = await prisma.apiKey.findFirst({ where, omit: { previousHash: true } });
      if (found === null) return undefined;
      const { hash: current, ...apiKey } = found;
      return Buffer.compare(current, hash) === 0 ? apiKey : endWithOverlap(apiKey);
    },
    async create({ name, expiresAt, plan, perMinute, perDay }) {
      const key = generateKey(prefix);
      const data = { name, expiresAt, plan, perMinute, perDay, ...fingerprint(key) };
      return { key, apiKey: await prisma.apiKey.create({ data, omit }) };
    },
    list: () => prisma.apiKey.findMany({ orderBy: { createdAt: 'asc' }, omit }),
    async rotate(id, oldUntil) {
      const key = generateKey(prefix);
      const { hash, start } = fingerprint(key);
      const until = oldUntil ?? null;
      const rotated = await prisma.$executeRaw`
        UPDATE api_keys
        SET previous_hash = CASE WHEN ${until}::timestamptz IS NOT NULL THEN hash END,
          previous_expires_at = ${until}::timestamptz, hash = ${hash}, start = ${start}
        WHERE id = ${id}::uuid AND revoked_at IS NULL`;
      const apiKey = rotated === 0 ? undefined : await find(id);
      return apiKey && { key, apiKey };
    },
    async revoke(id, at) {
      await prisma.apiKey.updateMany({ where: { id, revokedAt: null }, data: { revokedAt: at } });
      return find(id);
    },
    setPlan: (id, { plan, perMinute, perDay }) => update(id, { plan, perMinute, perDay }),
  };
}

function endWithOverlap(apiKey: ApiKey): ApiKey {
  const { expiresAt, previousExpiresAt } = apiKey;
  if (previousExpiresAt === null || (expiresAt !== null && expiresAt < previousExpiresAt)) return apiKey;
  return { ...apiKey, expiresAt: previousExpiresAt };
}

function fingerprint(key: string) {
  return { hash: new Uint8Array(hashKey(key)), start: keyStart(key) };
}
