import type { InSchema } from '../connections/schema-name.js';

/*
 * The SQL of usage. Days are UTC's.
 */

/** As YYYY-MM-DD in every DateStyle. */
const daySql = (day: string) => `to_char(${day}, 'YYYY-MM-DD')`;

/** The first of the last `$1` days, today included, by the clock of the database. */
const FIRST_KEPT_DAY = "(statement_timestamp() AT TIME ZONE 'UTC')::date - $1::integer + 1";

const TABLE = 'api_key_usage';

export function createStatements(inSchema: InSchema) {
  const [keys, usage] = ['api_keys', TABLE].map(inSchema);
  return {
    /** In the order of the primary key, so that nodes that add to the same rows at once cannot deadlock. */
    add: {
      table: TABLE,
      name: 'usage-add',
      text: `
        INSERT INTO ${usage} AS stored (api_key_id, day, operation, requests, denied)
        SELECT * FROM json_to_recordset($1)
          AS given ("apiKeyId" uuid, day date, operation text, requests bigint, denied bigint)
        ORDER BY 1, 2, 3
        ON CONFLICT (api_key_id, day, operation) DO UPDATE
        SET requests = stored.requests + excluded.requests, denied = stored.denied + excluded.denied`,
      emptyValues: ['[]'],
      isOnlyPlanned: true,
    },
    read: {
      table: TABLE,
      name: 'usage-read',
      text: `
        SELECT ${daySql('day')} AS day, operation, requests, denied FROM ${usage} AS usage
        WHERE api_key_id = $1 AND usage.day BETWEEN $2 AND $3
        ORDER BY usage.day DESC, operation COLLATE "C"`,
      emptyValues: ['00000000-0000-0000-0000-000000000000', '2000-01-01', '2000-01-01'],
    },
    /** Reads all keys if `$3` is null; day by day from `$4` on */
    readKeys: `
      SELECT id, name, owner, operation, sum(requests) AS requests, sum(denied) AS denied,
        ${daySql('max(day)')} AS day,
        coalesce(json_object_agg(${daySql('day')}, requests + denied) FILTER (WHERE day >= $4), '{}') AS "byDay"
      FROM ${usage} JOIN ${keys} AS keys ON keys.id = api_key_id
      WHERE day BETWEEN $1 AND $2 AND ($3::uuid[] IS NULL OR api_key_id = ANY ($3))
      GROUP BY id, operation`,
    /** Reads all keys if `$3` is null. Keys without an owner are the last line. */
    readOwners: `
      SELECT owner, operation, sum(requests) AS requests, sum(denied) AS denied
      FROM ${usage} JOIN ${keys} AS keys ON keys.id = api_key_id
      WHERE day BETWEEN $1 AND $2 AND ($3::uuid[] IS NULL OR api_key_id = ANY ($3))
      GROUP BY owner, operation
      ORDER BY owner COLLATE "C", operation COLLATE "C"`,
    /** One look into the index for each day, because a year of all keys is too much to read for a list of days */
    findDays: `
      WITH RECURSIVE days AS (
        SELECT max(day) AS day FROM ${usage} WHERE day BETWEEN $1 AND $2
        UNION ALL
        SELECT (SELECT max(usage.day) FROM ${usage} AS usage WHERE usage.day BETWEEN $1 AND days.day - 1)
        FROM days WHERE days.day IS NOT NULL
      )
      SELECT ${daySql('day')} AS day FROM days WHERE days.day IS NOT NULL ORDER BY days.day DESC`,
    findDaysOfKeys: `
      SELECT ${daySql('day')} AS day FROM ${usage} AS usage
      WHERE usage.day BETWEEN $1 AND $2 AND api_key_id = ANY ($3)
      GROUP BY usage.day ORDER BY usage.day DESC`,
    /** Reads all keys if `$2` is null */
    readKeysOnDay: `
      SELECT id, name, owner, ${daySql('day')} AS day, operation, requests, denied
      FROM ${usage} AS usage JOIN ${keys} AS keys ON keys.id = api_key_id
      WHERE usage.day = $1 AND ($2::uuid[] IS NULL OR api_key_id = ANY ($2))
      ORDER BY operation COLLATE "C", id`,
    /** The usage of a deleted key is deleted with its day. */
    deleteExpired: `
      WITH expired AS (SELECT ${FIRST_KEPT_DAY} AS before)
      DELETE FROM ${usage} USING expired WHERE day < before AND (
        api_key_id IN (SELECT api_key_id FROM ${usage}, expired WHERE day >= before)
        OR api_key_id NOT IN (SELECT id FROM ${keys})
      )`,
  };
}
