import type { Connections, Queries } from '../connections/connections.js';
import type { InSchema } from '../connections/schema-name.js';
import { deleteOldSql } from '../tables/old-rows.js';
import { completeId } from './store.js';

/** A changed column of a key, or a whole key that was created or deleted. */
export interface KeyChange {
  /** The id of the key */
  readonly id: string;
  /** The key's current name; null if the key has been deleted */
  readonly name: string | null;
  readonly changedAt: Date;
  /** The role that had logged in */
  readonly sessionRole: string;
  /** The role whose rights were used, which differs after SET ROLE */
  readonly activeRole: string;
  readonly applicationName: string;
  /** The column's name in the database; null for a creation or a deletion, whose value is the key as JSON */
  readonly column: string | null;
  /** Null for none; always null for a hash */
  readonly oldValue: string | null;
  /** Null for none; `changed` for a hash */
  readonly newValue: string | null;
}

/** With Unix milliseconds, which no setting of the session changes */
type ChangeRow = Omit<KeyChange, 'changedAt'> & { readonly changedAt: string };

function createHistoryStatements(inSchema: InSchema) {
  const [history, keys] = [inSchema('api_key_history'), inSchema('api_keys')];
  return {
    /** For all keys if `$1` is null; all of the history if `$2` is null */
    read: `
      SELECT api_key_id AS id, name, (extract(epoch FROM changed_at) * 1000)::bigint AS "changedAt",
        session_role AS "sessionRole", active_role AS "activeRole", application_name AS "applicationName",
        column_name AS column, old_value AS "oldValue", new_value AS "newValue"
      FROM ${history} AS history LEFT JOIN ${keys} AS keys ON keys.id = api_key_id
      WHERE ($1::uuid IS NULL OR api_key_id = $1)
        AND ($2::float8 IS NULL OR changed_at >= now() - make_interval(secs => $2))
      ORDER BY changed_at, column_name`,
    /** A deleted key is only in the history; a key that has not changed for long is only in the table. */
    findIds: `
      SELECT api_key_id AS id FROM ${history} WHERE api_key_id BETWEEN $1 AND $2
      UNION SELECT id FROM ${keys} WHERE id BETWEEN $1 AND $2 ORDER BY id`,
    deleteBefore: deleteOldSql(history, 'changed_at', 'changed_at < $1::timestamptz'),
  };
}

/** Every method may fail with a database error: see isDatabaseOutage. */
export type KeyHistoryStore = ReturnType<typeof createKeyHistoryStore>;

/** All queries on the history of keys, which triggers write. */
export function createKeyHistoryStore({ pool, inSchema }: Queries & Pick<Connections, 'inSchema'>) {
  const sql = createHistoryStatements(inSchema);
  return {
    /** The changes of one key, or of all, in the last `seconds` or all that are kept, oldest first. */
    async read({ id, seconds }: { readonly id?: string | undefined; readonly seconds?: number | undefined }) {
      const { rows } = await pool.query<ChangeRow>(sql.read, [id, seconds]);
      return rows.map((row): KeyChange => ({ ...row, changedAt: new Date(Number(row.changedAt)) }));
    },
    /** The ids of keys, even of deleted ones, that start with this: see KeyStore.findByIdPrefix. */
    async findIds(prefix: string): Promise<string[]> {
      const range = [completeId(prefix, '0'), completeId(prefix, 'f')];
      const { rows } = await pool.query<{ id: string }>(sql.findIds, range);
      return rows.map(({ id }) => id);
    },
    /**
     * Deletes a batch of the oldest changes from before a moment, and returns how many: 0 once there are none. Only the
     * owner of the tables may do this.
     */
    async deleteBefore(moment: Date): Promise<number> {
      return (await pool.query(sql.deleteBefore, [moment])).rowCount ?? 0;
    },
  };
}

/** The triggers that write the history and the past owners of a key, as the migrations create them on a table in a schema */
const TRIGGERS: Readonly<Record<string, (inSchema: InSchema) => string>> = {
  api_keys_history: (inSchema) => `AFTER INSERT OR UPDATE OR DELETE ON ${inSchema('api_keys')} FOR EACH ROW
    EXECUTE FUNCTION ${inSchema('note_api_key_history')}()`,
  api_keys_history_truncated: (inSchema) => `BEFORE TRUNCATE ON ${inSchema('api_keys')} FOR EACH STATEMENT
    EXECUTE FUNCTION ${inSchema('note_api_key_history')}()`,
  api_keys_past_owners: (inSchema) => `BEFORE UPDATE ON ${inSchema('api_keys')} FOR EACH ROW
    WHEN (OLD.owner IS DISTINCT FROM NEW.owner AND OLD.past_owners = NEW.past_owners)
    EXECUTE FUNCTION ${inSchema('note_past_owner')}()`,
};

/** Triggers that are ENABLE ALWAYS also fire where session_replication_role is replica. */
const FIND_SILENT = `
  SELECT name FROM unnest($1::text[]) AS expected (name)
  WHERE NOT EXISTS (
    SELECT FROM pg_trigger
    WHERE tgrelid = to_regclass($2) AND tgname = expected.name AND tgenabled = 'A')`;

/** Says that some changes of keys are not on record. */
export interface HistoryGap {
  readonly message: string;
  /** The SQL with which the owner of the tables mends the gap */
  readonly sql: string;
}

/** Whether a trigger of the history is missing or off, which only the owner can have done. May fail with a database error. */
export async function findHistoryGap({
  pool,
  inSchema,
}: Pick<Connections, 'pool' | 'inSchema'>): Promise<HistoryGap | undefined> {
  const table = inSchema('api_keys');
  const { rows } = await pool.query<{ name: string }>(FIND_SILENT, [Object.keys(TRIGGERS), table]);
  if (rows.length === 0) return undefined;
  const names = rows.map(({ name }) => name);
  const sql = names.map(
    (name) => `
CREATE OR REPLACE TRIGGER ${name} ${TRIGGERS[name]?.(inSchema)};
ALTER TABLE ${table} ENABLE ALWAYS TRIGGER ${name};`,
  );
  return {
    message: `Changes of keys are not all on record: the trigger ${names.join(' and ')} of api_keys is missing, or not ENABLE ALWAYS`,
    sql: sql.join('').trim(),
  };
}

/** For logs and readiness, whose readers cannot run the SQL there */
export const describeGap = ({ message }: HistoryGap) => `${message}: npm run migrate says what mends it.`;
