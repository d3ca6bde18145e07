-- A page of one status and animal. Requests go on meanwhile. IF NOT EXISTS: a migration before 1.0.0 created the same index.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "orders_status_pet_id_id_idx" ON "orders"("status", "pet_id", "id");
