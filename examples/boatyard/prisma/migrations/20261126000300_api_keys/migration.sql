-- The plans are the store's, which adds them in a migration of its own: ALTER TYPE "plan" ADD VALUE 'free'.
CREATE TYPE "plan" AS ENUM ();

-- JavaScript has no date for infinity or for years beyond 275760, and RFC 3339 none beyond 9999: one such date would fail
-- every request of its key.
CREATE TABLE "api_keys" (
    "id" UUID NOT NULL DEFAULT gen_random_uuid(),
    "name" TEXT NOT NULL,
    -- Whom the operator knows the key by; no limit and no answer depends on it.
    "owner" TEXT,
    "hash" BYTEA NOT NULL,
    "hint" TEXT NOT NULL,
    -- A rotated key: what it was before works until the overlap ends.
    "previous_hash" BYTEA,
    "previous_expires_at" TIMESTAMPTZ(3),
    "plan" "plan" NOT NULL,
    "per_minute" INTEGER,
    "per_day" INTEGER,
    -- Which scopes there are, and the default, are the store's to say.
    "scopes" TEXT[],
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "expires_at" TIMESTAMPTZ(3),
    "revoked_at" TIMESTAMPTZ(3),
    -- A ban is kept with its key. Both columns are set when a ban starts, and clearing "banned_until" lifts it.
    "banned_until" TIMESTAMPTZ(3),
    "ban_seconds" INTEGER,

    CONSTRAINT "api_keys_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "api_keys_name_length" CHECK (char_length("name") BETWEEN 1 AND 200),
    CONSTRAINT "api_keys_owner_length" CHECK (char_length("owner") BETWEEN 1 AND 200),
    -- Every character with the Unicode property White_Space
    CONSTRAINT "api_keys_owner_not_blank" CHECK (btrim("owner", U&'\0009\000A\000B\000C\000D\0020\0085\00A0\1680\2000\2001\2002\2003\2004\2005\2006\2007\2008\2009\200A\2028\2029\202F\205F\3000') <> ''),
    CONSTRAINT "api_keys_hash_is_sha256" CHECK (octet_length("hash") = 32),
    CONSTRAINT "api_keys_previous_hash_is_sha256" CHECK (octet_length("previous_hash") = 32),
    CONSTRAINT "api_keys_previous_hash_differs" CHECK ("previous_hash" <> "hash"),
    CONSTRAINT "api_keys_previous_hash_expires" CHECK (("previous_hash" IS NULL) = ("previous_expires_at" IS NULL)),
    CONSTRAINT "api_keys_previous_expires_at_bounds" CHECK ("previous_expires_at" >= '0001-01-01T00:00:00Z' AND "previous_expires_at" < '10000-01-01T00:00:00Z'),
    -- NULL where the plan has limits. A migration of the store says which plan has none.
    CONSTRAINT "api_keys_per_minute_bounds" CHECK ("per_minute" > 0),
    CONSTRAINT "api_keys_per_day_bounds" CHECK ("per_day" > 0),
    -- One or more: an empty array and NULL have no dimension. A key that may do nothing is a revoked one.
    CONSTRAINT "api_keys_scopes_not_empty" CHECK (array_ndims("scopes") IS NOT DISTINCT FROM 1),
    CONSTRAINT "api_keys_created_at_bounds" CHECK ("created_at" >= '0001-01-01T00:00:00Z' AND "created_at" < '10000-01-01T00:00:00Z'),
    CONSTRAINT "api_keys_expires_at_bounds" CHECK ("expires_at" >= '0001-01-01T00:00:00Z' AND "expires_at" < '10000-01-01T00:00:00Z'),
    CONSTRAINT "api_keys_revoked_at_bounds" CHECK ("revoked_at" >= '0001-01-01T00:00:00Z' AND "revoked_at" < '10000-01-01T00:00:00Z'),
    -- A ban ends: what is to end for good is revoked.
    CONSTRAINT "api_keys_banned_until_bounds" CHECK ("banned_until" >= '0001-01-01T00:00:00Z' AND "banned_until" < '2100-01-01T00:00:00Z'),
    CONSTRAINT "api_keys_ban_seconds_bounds" CHECK ("ban_seconds" BETWEEN 1 AND 86400)
);

CREATE UNIQUE INDEX "api_keys_hash_key" ON "api_keys"("hash");
CREATE UNIQUE INDEX "api_keys_previous_hash_key" ON "api_keys"("previous_hash");
CREATE INDEX "api_keys_owner_idx" ON "api_keys"("owner") WHERE "owner" IS NOT NULL;

-- For metrics, which must not scan all keys.
CREATE INDEX "api_keys_banned_until_idx" ON "api_keys"("banned_until") WHERE "banned_until" IS NOT NULL;
CREATE INDEX "api_keys_expires_at_idx" ON "api_keys"("expires_at") WHERE "expires_at" IS NOT NULL;

-- Every change of a key, whoever makes it: one row for each column that it gives another value, in the same transaction.
-- A creation and a deletion are one row without a column, whose value is the key as JSON. Of a hash, a row says only that
-- it has changed. Values are as JSON shows them, which is the same in sessions of every DateStyle.
--
-- No foreign key refers to api_keys, because the history outlives its key; and ids are drawn from no sequence, because rows
-- that are restored or replicated must not meet those that the trigger adds meanwhile.
CREATE TABLE "api_key_history" (
    "id" UUID NOT NULL DEFAULT gen_random_uuid(),
    "api_key_id" UUID NOT NULL,
    "changed_at" TIMESTAMPTZ(6) NOT NULL DEFAULT clock_timestamp(),
    -- Who has logged in, and whose rights were used: those of another role after SET ROLE.
    "session_role" TEXT NOT NULL,
    "active_role" TEXT NOT NULL,
    "application_name" TEXT NOT NULL,
    "column_name" TEXT,
    "old_value" TEXT,
    "new_value" TEXT,

    CONSTRAINT "api_key_history_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "api_key_history_changed_at_bounds" CHECK ("changed_at" >= '0001-01-01T00:00:00Z' AND "changed_at" < '10000-01-01T00:00:00Z')
);

CREATE INDEX "api_key_history_api_key_id_changed_at_idx" ON "api_key_history"("api_key_id", "changed_at");
CREATE INDEX "api_key_history_changed_at_idx" ON "api_key_history"("changed_at");

-- Columns are compared by their names in JSON: one that is added later is on record without a change here. A key that gets
-- another id has the row about it under both. Whoever changes a key needs a grant on this table, too.
--
-- It runs with the rights of whoever changes a key, so nothing of others may be called: every function and operator names
-- its schema. Without that, one that somebody has created for the very types of its arguments would be called instead of
-- PostgreSQL's, also where pg_catalog is searched first.
CREATE FUNCTION "note_api_key_history"() RETURNS trigger LANGUAGE plpgsql SET TimeZone = 'UTC' AS $$
DECLARE
    moment CONSTANT timestamptz := pg_catalog.clock_timestamp();
    application CONSTANT text := pg_catalog.current_setting('application_name');
    old_key CONSTANT jsonb := pg_catalog.to_jsonb(OLD);
    new_key CONSTANT jsonb := pg_catalog.to_jsonb(NEW);
    hashes CONSTANT text[] := '{hash, previous_hash}';
BEGIN
    IF TG_OP OPERATOR(pg_catalog.=) 'TRUNCATE' THEN
        INSERT INTO "api_key_history" ("api_key_id", "changed_at", "session_role", "active_role", "application_name", "old_value")
        SELECT "id", moment, session_user, current_user, application,
            (pg_catalog.to_jsonb(keys) OPERATOR(pg_catalog.-) hashes)::text
        FROM "api_keys" AS keys;
        RETURN NULL;
    END IF;
    INSERT INTO "api_key_history" ("api_key_id", "changed_at", "session_role", "active_role", "application_name",
        "column_name", "old_value", "new_value")
    SELECT keys.id, moment, session_user, current_user, application, change.*
    FROM (SELECT OLD."id" UNION SELECT NEW."id") AS keys (id), (
        SELECT NULL, (old_key OPERATOR(pg_catalog.-) hashes)::text, (new_key OPERATOR(pg_catalog.-) hashes)::text
        WHERE TG_OP OPERATOR(pg_catalog.<>) 'UPDATE'
        UNION ALL
        SELECT key, CASE WHEN is_shown THEN old_key OPERATOR(pg_catalog.->>) key END,
            CASE WHEN is_shown THEN new_key OPERATOR(pg_catalog.->>) key ELSE 'changed' END
        FROM (
            SELECT key, value, key OPERATOR(pg_catalog.<>) ALL (hashes) FROM pg_catalog.jsonb_each(new_key)
        ) AS after (key, value, is_shown)
        WHERE TG_OP OPERATOR(pg_catalog.=) 'UPDATE'
            AND (old_key OPERATOR(pg_catalog.->) key) OPERATOR(pg_catalog.<>) value
    ) AS change
    WHERE keys.id IS NOT NULL;
    RETURN NULL;
END
$$;
REVOKE EXECUTE ON FUNCTION "note_api_key_history"() FROM PUBLIC;

DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION "note_api_key_history"() SET search_path = pg_catalog, %I, pg_temp', current_schema());
END
$$;

CREATE TRIGGER "api_keys_history" AFTER INSERT OR UPDATE OR DELETE ON "api_keys"
    FOR EACH ROW EXECUTE FUNCTION "note_api_key_history"();
-- Before it, the keys can still be read.
CREATE TRIGGER "api_keys_history_truncated" BEFORE TRUNCATE ON "api_keys"
    FOR EACH STATEMENT EXECUTE FUNCTION "note_api_key_history"();
ALTER TABLE "api_keys" ENABLE ALWAYS TRIGGER "api_keys_history";
ALTER TABLE "api_keys" ENABLE ALWAYS TRIGGER "api_keys_history_truncated";
