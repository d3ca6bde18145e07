-- All rows of a day are updated at once: where a page has room for both versions, no index is written (HOT).
CREATE TABLE "api_key_usage" (
    "api_key_id" UUID NOT NULL,
    "day" DATE NOT NULL,
    "operation" TEXT NOT NULL,
    "requests" BIGINT NOT NULL,
    -- Those that a limit or a ban refused. They are not among the requests.
    "denied" BIGINT NOT NULL DEFAULT 0,

    CONSTRAINT "api_key_usage_pkey" PRIMARY KEY ("api_key_id", "day", "operation"),
    CONSTRAINT "api_key_usage_day_bounds" CHECK ("day" BETWEEN '0001-01-01' AND '9999-12-31'),
    CONSTRAINT "api_key_usage_operation_form" CHECK ("operation" ~ '^[A-Za-z][A-Za-z0-9._]*$' AND length("operation") <= 100),
    CONSTRAINT "api_key_usage_requests_bounds" CHECK ("requests" BETWEEN 0 AND 9007199254740991),
    CONSTRAINT "api_key_usage_denied_bounds" CHECK ("denied" BETWEEN 0 AND 9007199254740991),
    CONSTRAINT "api_key_usage_api_key_id_fkey" FOREIGN KEY ("api_key_id") REFERENCES "api_keys"("id") ON DELETE CASCADE ON UPDATE CASCADE
) WITH (fillfactor = 45);

-- Old rows are found by age, whoever they belong to.
CREATE INDEX "api_key_usage_day_idx" ON "api_key_usage"("day");

-- A node appends what it has counted, one row for each operation and day. Whichever node comes next aggregates the rows of
-- all nodes into api_key_usage, so that a row there is written once in a while, and not by each node in turn. Rows are
-- sorted by their first key, for which the rest of them need not be read. Random ids do not become smaller by compression.
CREATE TABLE "api_key_usage_batches" (
    "id" BIGINT GENERATED ALWAYS AS IDENTITY,
    "stored_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "day" DATE NOT NULL,
    "operation" TEXT NOT NULL,
    "api_key_ids" UUID[],
    "requests" BIGINT[],
    "denied" BIGINT[],
    "first_api_key_id" UUID GENERATED ALWAYS AS ("api_key_ids"[1]) STORED,

    CONSTRAINT "api_key_usage_batches_pkey" PRIMARY KEY ("id")
);

ALTER TABLE "api_key_usage_batches" ALTER COLUMN "api_key_ids" SET STORAGE EXTERNAL;
