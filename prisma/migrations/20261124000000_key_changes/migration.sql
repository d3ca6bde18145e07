-- Which keys have changed, so that processes ask for changes instead of reading every key they use again and again. By a
-- trigger, so that Prisma Studio and SQL count. The number is that of the transaction: a reader that has seen everything
-- up to the oldest transaction still running misses none, whatever the order of commits.
CREATE TABLE "api_key_changes" (
    "api_key_id" UUID NOT NULL,
    "transaction" BIGINT NOT NULL,
    "changed_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "api_key_changes_pkey" PRIMARY KEY ("api_key_id")
);

CREATE INDEX "api_key_changes_transaction_idx" ON "api_key_changes"("transaction");

-- Whoever may change a key has its change noted, without a right of their own to this table. The id of a TRUNCATE is that
-- of no key.
CREATE FUNCTION "note_api_key_change"() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO "api_key_changes" ("api_key_id", "transaction")
    VALUES (coalesce(OLD."id", '00000000-0000-0000-0000-000000000000'), pg_current_xact_id()::text::bigint)
    ON CONFLICT ("api_key_id") DO UPDATE SET "transaction" = excluded."transaction", "changed_at" = excluded."changed_at";
    RETURN NULL;
END
$$;

CREATE TRIGGER "api_keys_changed" AFTER UPDATE OR DELETE ON "api_keys"
    FOR EACH ROW EXECUTE FUNCTION "note_api_key_change"();
CREATE TRIGGER "api_keys_truncated" AFTER TRUNCATE ON "api_keys"
    FOR EACH STATEMENT EXECUTE FUNCTION "note_api_key_change"();

-- For metrics, which must not scan all keys.
CREATE INDEX "api_keys_banned_until_idx" ON "api_keys"("banned_until") WHERE "banned_until" IS NOT NULL;
CREATE INDEX "api_keys_expires_at_idx" ON "api_keys"("expires_at") WHERE "expires_at" IS NOT NULL;
