ALTER TABLE "api_keys"
    ALTER COLUMN "scopes" SET DEFAULT ARRAY['boats:read', 'boats:write', 'moves:read']::TEXT[],
    ADD CONSTRAINT "api_keys_scopes_known" CHECK ("scopes" <@ ARRAY['boats:read', 'boats:write', 'moves:read']::TEXT[]),
    ADD CONSTRAINT "api_keys_limits_of_enterprise" CHECK (
        ("plan" = 'enterprise') = ("per_minute" IS NOT NULL) AND ("plan" = 'enterprise') = ("per_day" IS NOT NULL)
    );

CREATE TYPE "boat_status" AS ENUM ('for_sale', 'laid_up', 'sold');
CREATE TABLE "boats" (
    "id" BIGINT GENERATED ALWAYS AS IDENTITY (MAXVALUE 9007199254740991),
    "name" TEXT NOT NULL,
    "berth" BIGINT NOT NULL,
    "status" "boat_status" NOT NULL DEFAULT 'for_sale',

    CONSTRAINT "boats_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "boats_id_bounds" CHECK ("id" BETWEEN 1 AND 9007199254740991),
    CONSTRAINT "boats_name_length" CHECK (char_length("name") BETWEEN 1 AND 200),
    CONSTRAINT "boats_berth_bounds" CHECK ("berth" BETWEEN -9007199254740991 AND 9007199254740991)
);
CREATE INDEX "boats_status_id_idx" ON "boats"("status", "id");
CREATE INDEX "boats_berth_id_idx" ON "boats"("berth", "id");
CREATE INDEX "boats_status_berth_id_idx" ON "boats"("status", "berth", "id");

CREATE TABLE "moves" (
    "id" BIGINT GENERATED ALWAYS AS IDENTITY (MAXVALUE 9007199254740991),
    "boat_id" BIGINT NOT NULL,
    "place" TEXT NOT NULL DEFAULT 'quay',
    "moved_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "moves_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "moves_id_bounds" CHECK ("id" BETWEEN 1 AND 9007199254740991),
    CONSTRAINT "moves_moved_at_bounds" CHECK ("moved_at" >= '0001-01-01T00:00:00Z' AND "moved_at" < '10000-01-01T00:00:00Z'),
    CONSTRAINT "moves_boat_id_fkey" FOREIGN KEY ("boat_id") REFERENCES "boats"("id") ON DELETE RESTRICT ON UPDATE CASCADE
);
CREATE INDEX "moves_boat_id_id_idx" ON "moves"("boat_id", "id");

-- Each table that is listed by its ids
INSERT INTO "insert_turns" VALUES ('boats'), ('moves');
