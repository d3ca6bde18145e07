-- A ban is kept with its key. Both columns are set when a ban starts, and clearing "banned_until" lifts it.
ALTER TABLE "api_keys"
    ADD COLUMN "banned_until" TIMESTAMPTZ(3),
    ADD COLUMN "ban_seconds" INTEGER,
    -- Retry-After is the time left of a ban, which infinity does not have, and JavaScript has no date for later years.
    ADD CONSTRAINT "api_keys_banned_until_bounds" CHECK ("banned_until" >= '0001-01-01T00:00:00Z' AND "banned_until" < '10000-01-01T00:00:00Z'),
    ADD CONSTRAINT "api_keys_ban_seconds_bounds" CHECK ("ban_seconds" BETWEEN 1 AND 86400);
