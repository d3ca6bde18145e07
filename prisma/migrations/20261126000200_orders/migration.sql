CREATE TYPE "order_status" AS ENUM ('placed', 'approved', 'delivered');

CREATE TABLE "orders" (
    "id" BIGINT GENERATED ALWAYS AS IDENTITY (MAXVALUE 9007199254740991),
    "pet_id" BIGINT NOT NULL,
    "quantity" INTEGER NOT NULL,
    "status" "order_status" NOT NULL DEFAULT 'placed',
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "orders_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "orders_id_bounds" CHECK ("id" BETWEEN 1 AND 9007199254740991),
    CONSTRAINT "orders_quantity_bounds" CHECK ("quantity" >= 1),
    -- RFC 3339 has four digits for the year, and no infinity
    CONSTRAINT "orders_created_at_bounds" CHECK ("created_at" >= '0001-01-01T00:00:00Z' AND "created_at" < '10000-01-01T00:00:00Z'),
    CONSTRAINT "orders_pet_id_fkey" FOREIGN KEY ("pet_id") REFERENCES "pets"("id") ON DELETE RESTRICT ON UPDATE CASCADE
);

CREATE INDEX "orders_pet_id_idx" ON "orders"("pet_id");

INSERT INTO "insert_turns" VALUES ('orders');
