-- No foreign key refers to api_keys: usage must not wait for a key that somebody has locked.
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
    CONSTRAINT "api_key_usage_denied_bounds" CHECK ("denied" BETWEEN 0 AND 9007199254740991)
) WITH (fillfactor = 45);

-- Old rows are found by age, whoever they belong to.
CREATE INDEX "api_key_usage_day_idx" ON "api_key_usage"("day");
