-- A batch holds the sums of one operation on one day, instead of both for each key. Those that are stored are added up.
WITH "batches" AS (
    DELETE FROM "api_key_usage_batches" RETURNING *
), "added" AS (
    SELECT unnest("api_key_ids") AS "api_key_id", unnest("days") AS "day", unnest("operations") AS "operation",
        unnest("requests") AS "requests"
    FROM "batches"
)
INSERT INTO "api_key_usage" ("api_key_id", "day", "operation", "requests")
SELECT "api_key_id", "day", "operation", sum("requests")
FROM "added" JOIN "api_keys" ON "api_keys"."id" = "api_key_id"
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
ON CONFLICT ("api_key_id", "day", "operation")
DO UPDATE SET "requests" = least("api_key_usage"."requests" + excluded."requests", 9007199254740991);

ALTER TABLE "api_key_usage_batches"
    DROP COLUMN "days",
    DROP COLUMN "operations",
    ADD COLUMN "day" DATE NOT NULL,
    ADD COLUMN "operation" TEXT NOT NULL;
