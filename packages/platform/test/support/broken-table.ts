import type pg from 'pg';

/**
 * Puts a view in the place of a table, so that every statement on it fails by itself, which is an internal error: a table
 * that is missing or not permitted would be an outage, as would a view without `xmin`, which some statements read. Returns
 * what brings the table back.
 */
export async function breakTable(pool: pg.Pool, table: string): Promise<() => Promise<void>> {
  await pool.query(`
    ALTER TABLE ${table} RENAME TO ${table}_lost;
    CREATE OR REPLACE FUNCTION fail() RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RAISE 'lost'; END $$;
    CREATE OR REPLACE FUNCTION fail_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'lost'; END $$;
    CREATE VIEW ${table} AS SELECT *, xmin FROM ${table}_lost WHERE (SELECT fail()) IS NOT NULL;
    CREATE TRIGGER fail INSTEAD OF INSERT OR UPDATE OR DELETE ON ${table} FOR EACH ROW EXECUTE FUNCTION fail_row();
    GRANT ALL ON ${table} TO PUBLIC`);
  return async () => {
    await pool.query(`DROP VIEW ${table}; ALTER TABLE ${table}_lost RENAME TO ${table}`);
  };
}
