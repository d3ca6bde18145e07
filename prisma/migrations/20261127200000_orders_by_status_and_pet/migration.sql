-- A page of one status, of one animal, and of both. New orders wait meanwhile: with 10^6 in the table for about 1 s.
CREATE INDEX "orders_status_id_idx" ON "orders"("status", "id");
CREATE INDEX "orders_status_pet_id_id_idx" ON "orders"("status", "pet_id", "id");
CREATE INDEX "orders_pet_id_id_idx" ON "orders"("pet_id", "id");
-- It is the beginning of the last.
DROP INDEX "orders_pet_id_idx";
