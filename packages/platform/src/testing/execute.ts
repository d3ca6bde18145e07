import pg from 'pg';

/** Runs a statement, or several without values, on a connection of its own. Resolves with the rows of a single one. */
export async function execute<Row extends pg.QueryResultRow>(
  url: string,
  sql: string,
  values?: unknown[],
): Promise<Row[]> {
  const client = new pg.Client(url);
  // A connection that breaks rejects the query, too.
  client.on('error', () => {});
  await client.connect();
  try {
    const { rows } = await client.query<Row>(sql, values);
    return rows;
  } finally {
    await client.end();
  }
}
