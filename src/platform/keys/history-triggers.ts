import type { Connections } from '../connections/connections.js';
import { toInstalledCommands } from '../errors/installed-commands.js';

/** The triggers that write the history, as the migration creates them: when each fires, and on which table */
const TRIGGERS: Readonly<Record<string, (table: string) => string>> = {
  api_keys_history: (table) => `AFTER INSERT OR UPDATE OR DELETE ON ${table} FOR EACH ROW`,
  api_keys_history_truncated: (table) => `BEFORE TRUNCATE ON ${table} FOR EACH STATEMENT`,
};

/** Those that are ENABLE ALWAYS also fire where session_replication_role is replica. */
const FIND_SILENT = `
  SELECT name FROM unnest($1::text[]) AS expected (name)
  WHERE NOT EXISTS (
    SELECT FROM pg_trigger
    WHERE tgrelid = to_regclass($2) AND tgname = expected.name AND tgenabled = 'A')`;

/** That changes of keys are not all on record. */
export interface HistoryGap {
  readonly message: string;
  /** What mends it, as the owner of the tables */
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
CREATE OR REPLACE TRIGGER ${name} ${TRIGGERS[name]?.(table)} EXECUTE FUNCTION ${inSchema('note_api_key_history')}();
ALTER TABLE ${table} ENABLE ALWAYS TRIGGER ${name};`,
  );
  return {
    message: `Changes of keys are not all on record: the trigger ${names.join(' and ')} of api_keys is missing, or not ENABLE ALWAYS`,
    sql: sql.join('').trim(),
  };
}

/** For readers who cannot mend it, or are doing something else */
export const describeGap = ({ message }: HistoryGap) =>
  toInstalledCommands(`${message}: npm run migrate says what mends it.`);
