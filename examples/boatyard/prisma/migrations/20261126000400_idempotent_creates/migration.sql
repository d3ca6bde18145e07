-- A bounded repetition in a check, such as {1,255}, would make PostgreSQL build a state for each character of each value:
-- 47 µs for an idempotency key of 36 characters, instead of 2. How many calls a batch may hold is the service's business.
--
-- No foreign key refers to api_keys: a create must not wait for a key that somebody has locked, least of all while it has
-- the turn that other creates wait for. What a deleted key leaves here is deleted within a day.
CREATE TABLE "idempotent_creates" (
    "api_key_id" UUID NOT NULL,
    "key" TEXT NOT NULL,
    "operation" TEXT NOT NULL,
    "batch_index" SMALLINT NOT NULL,
    "body_hash" BYTEA NOT NULL,
    "response" JSON NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "idempotent_creates_pkey" PRIMARY KEY ("api_key_id", "key", "operation", "batch_index"),
    CONSTRAINT "idempotent_creates_key_form" CHECK ("key" ~ '^[!-~]+$' AND length("key") <= 255),
    CONSTRAINT "idempotent_creates_operation_form" CHECK ("operation" ~ '^[A-Za-z][A-Za-z0-9._]*$' AND length("operation") <= 100),
    CONSTRAINT "idempotent_creates_batch_index_bounds" CHECK ("batch_index" >= 0),
    CONSTRAINT "idempotent_creates_body_hash_is_sha256" CHECK (octet_length("body_hash") = 32)
);

-- Expired rows are found by age, whoever they belong to.
CREATE INDEX "idempotent_creates_created_at_idx" ON "idempotent_creates"("created_at");
