-- Whose key it was, so that a key that moves to another owner leaves its earlier usage on the bill of the one before. The
-- owner is stored under their last day in UTC, the day of the move: {"2026-11-29": "acme"}, with null for a key without one.
-- A day belongs to whoever had the key when the day began, so no later move changes what was read of it.
ALTER TABLE "api_keys"
    ADD COLUMN "past_owners" JSONB NOT NULL DEFAULT '{}',
    ADD CONSTRAINT "api_keys_past_owners_is_object" CHECK (jsonb_typeof("past_owners") = 'object');

-- It changes the row that is being changed, so it takes no grant that whoever changes a key lacks. A further move on the same
-- day adds nothing: that day has its owner already. Names are qualified for the reason that "note_api_key_history" gives.
CREATE FUNCTION "note_past_owner"() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    today CONSTANT text := pg_catalog.to_char(pg_catalog.timezone('UTC', pg_catalog.clock_timestamp()), 'YYYY-MM-DD');
BEGIN
    IF NOT EXISTS (
        SELECT FROM pg_catalog.jsonb_object_keys(OLD."past_owners") AS past (until)
        WHERE past.until COLLATE pg_catalog."C" OPERATOR(pg_catalog.>=) today
    ) THEN
        NEW."past_owners" := OLD."past_owners" OPERATOR(pg_catalog.||) pg_catalog.jsonb_build_object(today, OLD."owner");
    END IF;
    RETURN NEW;
END
$$;
REVOKE EXECUTE ON FUNCTION "note_past_owner"() FROM PUBLIC;

DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION "note_past_owner"() SET search_path = pg_catalog, %I, pg_temp', current_schema());
END
$$;

-- Replication sets both columns, and brings the past owners along.
CREATE TRIGGER "api_keys_past_owners" BEFORE UPDATE ON "api_keys" FOR EACH ROW
    WHEN (OLD."owner" IS DISTINCT FROM NEW."owner" AND OLD."past_owners" = NEW."past_owners")
    EXECUTE FUNCTION "note_past_owner"();
ALTER TABLE "api_keys" ENABLE ALWAYS TRIGGER "api_keys_past_owners";
