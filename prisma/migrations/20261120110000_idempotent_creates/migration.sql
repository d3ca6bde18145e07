CREATE TABLE "idempotent_creates" (
    "api_key_id" UUID NOT NULL,
    "key" TEXT NOT NULL,
    "call" SMALLINT NOT NULL,
    "body_hash" BYTEA NOT NULL,
    "response" JSON NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "idempotent_creates_pkey" PRIMARY KEY ("api_key_id", "key", "call"),
    CONSTRAINT "idempotent_creates_key_form" CHECK ("key" ~ '^[!-~]{1,255}$'),
    CONSTRAINT "idempotent_creates_call_bounds" CHECK ("call" BETWEEN 0 AND 19),
    CONSTRAINT "idempotent_creates_body_hash_is_sha256" CHECK (octet_length("body_hash") = 32)
);

-- Expired rows are found by age, whoever they belong to.
CREATE INDEX "idempotent_creates_created_at_idx" ON "idempotent_creates"("created_at");

ALTER TABLE "idempotent_creates" ADD CONSTRAINT "idempotent_creates_api_key_id_fkey" FOREIGN KEY ("api_key_id") REFERENCES "api_keys"("id") ON DELETE CASCADE ON UPDATE CASCADE;
