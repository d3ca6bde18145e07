import pg from 'pg';

/*
 * The connections of bench/baseline.ts.
 */

export const pool = new pg.Pool({
  connectionString: process.env.DATABASE_URL,
  max: 10,
  // At 512 connections on a slow machine, requests wait longer than a second for one of the pool.
  connectionTimeoutMillis: 10_000,
  query_timeout: 1_500,
});
pg.types.setTypeParser(pg.types.builtins.INT8, Number);

export const PET_COLUMNS = 'id, name, category_id AS "categoryId", status';
