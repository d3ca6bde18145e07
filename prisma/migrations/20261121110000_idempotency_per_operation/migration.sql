-- Scopes an idempotency key to its operation. The default and the order of the primary key serve nodes of the version
-- before during a rolling upgrade: they know no operation but createPet, insert without the column, and look rows up by
-- the first two columns of the key and "call".
ALTER TABLE "idempotent_creates"
    ADD COLUMN "operation" TEXT NOT NULL DEFAULT 'createPet',
    DROP CONSTRAINT "idempotent_creates_pkey",
    ADD CONSTRAINT "idempotent_creates_pkey" PRIMARY KEY ("api_key_id", "key", "operation", "call"),
    ADD CONSTRAINT "idempotent_creates_operation_form" CHECK ("operation" ~ '^[A-Za-z][A-Za-z0-9._]{0,99}$'),
    -- How many calls a batch may hold is the service's business alone.
    DROP CONSTRAINT "idempotent_creates_call_bounds",
    ADD CONSTRAINT "idempotent_creates_call_bounds" CHECK ("call" >= 0);
