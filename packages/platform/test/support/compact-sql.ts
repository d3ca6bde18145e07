/** SQL without what only its layout needs, to compare two statements. */
export const compactSql = (sql: string): string =>
  sql
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/ ?([()]) ?/g, '$1')
    .trim();
