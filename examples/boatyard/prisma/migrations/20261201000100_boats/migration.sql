ALTER TABLE "api_keys"
    ALTER COLUMN "scopes" SET DEFAULT ARRAY['boats:read', 'boats:write']::TEXT[],
    ADD CONSTRAINT "api_keys_scopes_known" CHECK ("scopes" <@ ARRAY['boats:read', 'boats:write']::TEXT[]),
    ADD CONSTRAINT "api_keys_limits_of_custom" CHECK (
        ("plan" = 'custom') = ("per_minute" IS NOT NULL) AND ("plan" = 'custom') = ("per_day" IS NOT NULL)
    );

CREATE TYPE "boat_status" AS ENUM ('for_sale', 'sold');
CREATE TABLE "boats" (
    "id" BIGINT GENERATED ALWAYS AS IDENTITY (MAXVALUE 9007199254740991) PRIMARY KEY,
    "name" TEXT NOT NULL CHECK (char_length("name") BETWEEN 1 AND 100),
    "metres" INTEGER NOT NULL CHECK ("metres" BETWEEN 1 AND 40),
    "status" "boat_status" NOT NULL DEFAULT 'for_sale'
);
CREATE INDEX "boats_status_id_idx" ON "boats"("status", "id");
-- Each table that is listed by its ids
INSERT INTO "insert_turns" VALUES ('boats');
