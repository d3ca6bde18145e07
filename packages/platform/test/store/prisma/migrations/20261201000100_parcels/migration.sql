ALTER TABLE "api_keys"
    ALTER COLUMN "scopes" SET DEFAULT ARRAY['parcels:read', 'parcels:write', 'scans:read']::TEXT[],
    ADD CONSTRAINT "api_keys_scopes_known" CHECK ("scopes" <@ ARRAY['parcels:read', 'parcels:write', 'scans:read']::TEXT[]),
    ADD CONSTRAINT "api_keys_limits_of_enterprise" CHECK (
        ("plan" = 'enterprise') = ("per_minute" IS NOT NULL) AND ("plan" = 'enterprise') = ("per_day" IS NOT NULL)
    );

CREATE TYPE "parcel_status" AS ENUM ('waiting', 'collected', 'lost');
CREATE TABLE "parcels" (
    "id" BIGINT GENERATED ALWAYS AS IDENTITY (MAXVALUE 9007199254740991),
    "label" TEXT NOT NULL,
    "shelf" BIGINT NOT NULL,
    "status" "parcel_status" NOT NULL DEFAULT 'waiting',

    CONSTRAINT "parcels_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "parcels_id_bounds" CHECK ("id" BETWEEN 1 AND 9007199254740991),
    CONSTRAINT "parcels_label_length" CHECK (char_length("label") BETWEEN 1 AND 200),
    CONSTRAINT "parcels_shelf_bounds" CHECK ("shelf" BETWEEN -9007199254740991 AND 9007199254740991)
);
CREATE INDEX "parcels_status_id_idx" ON "parcels"("status", "id");
CREATE INDEX "parcels_shelf_id_idx" ON "parcels"("shelf", "id");
CREATE INDEX "parcels_status_shelf_id_idx" ON "parcels"("status", "shelf", "id");

CREATE TABLE "scans" (
    "id" BIGINT GENERATED ALWAYS AS IDENTITY (MAXVALUE 9007199254740991),
    "parcel_id" BIGINT NOT NULL,
    "place" TEXT NOT NULL DEFAULT 'door',
    "scanned_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "scans_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "scans_id_bounds" CHECK ("id" BETWEEN 1 AND 9007199254740991),
    CONSTRAINT "scans_scanned_at_bounds" CHECK ("scanned_at" >= '0001-01-01T00:00:00Z' AND "scanned_at" < '10000-01-01T00:00:00Z'),
    CONSTRAINT "scans_parcel_id_fkey" FOREIGN KEY ("parcel_id") REFERENCES "parcels"("id") ON DELETE RESTRICT ON UPDATE CASCADE
);
CREATE INDEX "scans_parcel_id_id_idx" ON "scans"("parcel_id", "id");

INSERT INTO "insert_turns" VALUES ('parcels'), ('scans');
