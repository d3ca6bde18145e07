import type { InSchema } from '../connections/schema-name.js';

/*
 * The SQL of usage. Days are UTC's.
 */

/** As YYYY-MM-DD in every DateStyle. */
const daySql = (day: string) => `to_char(${day}, 'YYYY-MM-DD')`;

/** The first of the last `$1` days, today included, by the clock of the database. */
const FIRST_KEPT_DAY = "(statement_timestamp() AT TIME ZONE 'UTC')::date - $1::integer + 1";

const TABLE = 'api_key_usage';

/** Whose a key was on the day of its usage: the past owner whose last day comes next, or else its owner. */
const OWNER_ON_DAY = `
  CASE WHEN past_owners = '{}' THEN owner ELSE (
    SELECT past.owner
    FROM (SELECT * FROM jsonb_each_text(past_owners) UNION ALL SELECT NULL, keys.owner) AS past (until, owner)
    WHERE past.until IS NULL OR past.until COLLATE "C" >= ${daySql('usage.day')}
    ORDER BY past.until COLLATE "C" NULLS LAST LIMIT 1
  ) END`;

export function createUsageStatements(inSchema: InSchema) {
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
    /** The keys that are an owner's, or were. */
    findOwned: `
      SELECT id FROM ${keys} WHERE owner = $1 OR EXISTS (
        SELECT FROM jsonb_each_text(past_owners) AS past (until, owner) WHERE past.owner = $1
      )`,
    /** Each past owner of a key, by their last day */
    readPastOwners: `
      SELECT past.until, past.owner FROM ${keys} AS keys, jsonb_each_text(past_owners) AS past (until, owner)
      WHERE id = $1 ORDER BY past.until COLLATE "C"`,
    /** Reads all keys if `$3` is null, and those of all owners if `$5` is; day by day from `$4` on */
    readKeys: `
      SELECT id, name, owner, operation, sum(requests) AS requests, sum(denied) AS denied,
        ${daySql('max(day)')} AS day,
        coalesce(json_object_agg(${daySql('day')}, requests + denied) FILTER (WHERE day >= $4), '{}') AS "byDay"
      FROM ${usage} AS usage JOIN ${keys} AS keys ON keys.id = api_key_id
      WHERE day BETWEEN $1 AND $2 AND ($3::uuid[] IS NULL OR api_key_id = ANY ($3))
        AND ($5::text IS NULL OR ${OWNER_ON_DAY} = $5)
      GROUP BY id, operation`,
    /** Reads all keys if `$3` is null, and those of all owners if `$4` is. Keys without an owner are the last line. */
    readOwners: `
      SELECT owner, operation, sum(requests) AS requests, sum(denied) AS denied
      FROM (
        SELECT ${OWNER_ON_DAY} AS owner, operation, requests, denied
        FROM ${usage} AS usage JOIN ${keys} AS keys ON keys.id = api_key_id
        WHERE day BETWEEN $1 AND $2 AND ($3::uuid[] IS NULL OR api_key_id = ANY ($3))
      ) AS billed
      WHERE $4::text IS NULL OR owner = $4
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
    /** Reads all keys if `$2` is null, and those of all owners if `$3` is */
    readKeysOnDay: `
      SELECT id, name, ${OWNER_ON_DAY} AS owner, ${daySql('day')} AS day, operation, requests, denied
      FROM ${usage} AS usage JOIN ${keys} AS keys ON keys.id = api_key_id
      WHERE usage.day = $1 AND ($2::uuid[] IS NULL OR api_key_id = ANY ($2))
        AND ($3::text IS NULL OR ${OWNER_ON_DAY} = $3)
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
