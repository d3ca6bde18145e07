-- An animal has at most one open order, whoever inserts it. New orders and changes of orders wait meanwhile: with 10^6 in the table
-- for about 1 s, and for 6 s if 200,000 of them have to be cancelled.
LOCK TABLE "orders" IN SHARE ROW EXCLUSIVE MODE;

-- Of several open orders of an animal, the newest stays open.
--
-- So does one whose animal was made available or sold by hand, because only the store knows which of the two is right. Nobody can
-- order such an animal until its order is delivered, which makes it sold, or cancelled, which makes it available:
-- SELECT * FROM orders JOIN pets ON pets.id = pet_id WHERE orders.status IN ('placed', 'approved') AND pets.status <> 'pending';
DO $$
DECLARE
    cancelled bigint;
BEGIN
    UPDATE "orders" SET "status" = 'cancelled'
    WHERE "status" IN ('placed', 'approved') AND EXISTS (
        SELECT FROM "orders" AS "newer"
        WHERE "newer"."pet_id" = "orders"."pet_id" AND "newer"."status" IN ('placed', 'approved') AND "newer"."id" > "orders"."id"
    );
    GET DIAGNOSTICS cancelled = ROW_COUNT;
    IF cancelled > 0 THEN
        RAISE NOTICE '% open order(s) are now cancelled: of several open orders of an animal, the newest stays open', cancelled;
    END IF;
END
$$;

-- IF NOT EXISTS: a migration before 1.0.0 created the same index.
CREATE UNIQUE INDEX IF NOT EXISTS "orders_open_pet_id_key" ON "orders"("pet_id") WHERE ("status" IN ('placed', 'approved'));
