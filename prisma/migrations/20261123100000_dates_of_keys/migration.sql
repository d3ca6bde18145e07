-- JavaScript has no date for infinity or for years beyond 275760, and RFC 3339 none beyond 9999. One such date would fail
-- every request of its key. Rows that have one keep their meaning: a key that expires at infinity never does.
UPDATE "api_keys" SET
    "created_at" = least(greatest("created_at", '0001-01-01T00:00:00Z'), '9999-12-31T23:59:59.999Z'),
    "expires_at" = CASE WHEN "expires_at" < '10000-01-01T00:00:00Z' THEN greatest("expires_at", '0001-01-01T00:00:00Z') END,
    "revoked_at" = least(greatest("revoked_at", '0001-01-01T00:00:00Z'), '9999-12-31T23:59:59.999Z'),
    "previous_expires_at" = least(greatest("previous_expires_at", '0001-01-01T00:00:00Z'), '9999-12-31T23:59:59.999Z')
WHERE NOT (
    "created_at" >= '0001-01-01T00:00:00Z' AND "created_at" < '10000-01-01T00:00:00Z'
    AND coalesce("expires_at", "created_at") >= '0001-01-01T00:00:00Z' AND coalesce("expires_at", "created_at") < '10000-01-01T00:00:00Z'
    AND coalesce("revoked_at", "created_at") >= '0001-01-01T00:00:00Z' AND coalesce("revoked_at", "created_at") < '10000-01-01T00:00:00Z'
    AND coalesce("previous_expires_at", "created_at") >= '0001-01-01T00:00:00Z' AND coalesce("previous_expires_at", "created_at") < '10000-01-01T00:00:00Z'
);

ALTER TABLE "api_keys"
    ADD CONSTRAINT "api_keys_created_at_bounds" CHECK ("created_at" >= '0001-01-01T00:00:00Z' AND "created_at" < '10000-01-01T00:00:00Z'),
    ADD CONSTRAINT "api_keys_expires_at_bounds" CHECK ("expires_at" >= '0001-01-01T00:00:00Z' AND "expires_at" < '10000-01-01T00:00:00Z'),
    ADD CONSTRAINT "api_keys_revoked_at_bounds" CHECK ("revoked_at" >= '0001-01-01T00:00:00Z' AND "revoked_at" < '10000-01-01T00:00:00Z'),
    ADD CONSTRAINT "api_keys_previous_expires_at_bounds" CHECK ("previous_expires_at" >= '0001-01-01T00:00:00Z' AND "previous_expires_at" < '10000-01-01T00:00:00Z');
