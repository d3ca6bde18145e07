-- Retry-After is the time left of a ban, which infinity does not have, and JavaScript has no date for some later years.
ALTER TABLE "api_keys"
    ADD CONSTRAINT "api_keys_banned_until_bounds" CHECK ("banned_until" >= '0001-01-01T00:00:00Z' AND "banned_until" < '10000-01-01T00:00:00Z');
