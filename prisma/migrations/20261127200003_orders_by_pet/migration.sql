-- A page of one animal. Requests go on meanwhile. IF NOT EXISTS: a migration before 1.0.0 created the same index.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "orders_pet_id_id_idx" ON "orders"("pet_id", "id");
