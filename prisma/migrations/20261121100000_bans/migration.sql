-- A ban is kept with its key. Both columns are set when a ban starts, and clearing "banned_until" lifts it.
ALTER TABLE "api_keys"
    ADD COLUMN "banned_until" TIMESTAMPTZ(3),
    ADD COLUMN "ban_seconds" INTEGER,
    ADD CONSTRAINT "api_keys_ban_seconds_bounds" CHECK ("ban_seconds" BETWEEN 1 AND 86400);
