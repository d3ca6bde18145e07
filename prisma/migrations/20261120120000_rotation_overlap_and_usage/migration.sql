-- A rotated key: what it was before works until the overlap ends.
ALTER TABLE "api_keys"
    ADD COLUMN "previous_hash" BYTEA,
    ADD COLUMN "previous_expires_at" TIMESTAMPTZ(3),
    ADD CONSTRAINT "api_keys_previous_hash_is_sha256" CHECK (octet_length("previous_hash") = 32),
    ADD CONSTRAINT "api_keys_previous_hash_differs" CHECK ("previous_hash" <> "hash"),
    ADD CONSTRAINT "api_keys_previous_hash_expires" CHECK (("previous_hash" IS NULL) = ("previous_expires_at" IS NULL));

CREATE UNIQUE INDEX "api_keys_previous_hash_key" ON "api_keys"("previous_hash");

CREATE TABLE "api_key_usage" (
    "api_key_id" UUID NOT NULL,
    "day" DATE NOT NULL,
    "operation" TEXT NOT NULL,
    "requests" BIGINT NOT NULL,

    CONSTRAINT "api_key_usage_pkey" PRIMARY KEY ("api_key_id", "day", "operation"),
    CONSTRAINT "api_key_usage_day_bounds" CHECK ("day" BETWEEN '0001-01-01' AND '9999-12-31'),
    CONSTRAINT "api_key_usage_operation_form" CHECK ("operation" ~ '^[A-Za-z][A-Za-z0-9._]{0,99}$'),
    CONSTRAINT "api_key_usage_requests_bounds" CHECK ("requests" BETWEEN 1 AND 9007199254740991)
);

-- Old rows are found by age, whoever they belong to.
CREATE INDEX "api_key_usage_day_idx" ON "api_key_usage"("day");

ALTER TABLE "api_key_usage" ADD CONSTRAINT "api_key_usage_api_key_id_fkey" FOREIGN KEY ("api_key_id") REFERENCES "api_keys"("id") ON DELETE CASCADE ON UPDATE CASCADE;
