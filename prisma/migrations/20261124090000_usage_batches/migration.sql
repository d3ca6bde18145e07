-- A node appends the sums of what it counted as rows of arrays. Whichever node comes next adds those of all nodes to
-- api_key_usage, so that a row there is written once in a while, and not by each node in turn.
CREATE TABLE "api_key_usage_batches" (
    "id" BIGSERIAL NOT NULL,
    "stored_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "api_key_ids" UUID[],
    "days" DATE[],
    "operations" TEXT[],
    "requests" BIGINT[],

    CONSTRAINT "api_key_usage_batches_pkey" PRIMARY KEY ("id")
);

CREATE INDEX "api_key_usage_batches_stored_at_idx" ON "api_key_usage_batches"("stored_at");

-- Random ids do not become smaller by compression.
ALTER TABLE "api_key_usage_batches" ALTER COLUMN "api_key_ids" SET STORAGE EXTERNAL;
