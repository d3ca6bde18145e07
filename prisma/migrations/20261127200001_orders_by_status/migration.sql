-- A page of one status. Requests go on meanwhile. IF NOT EXISTS: a migration before 1.0.0 created the same index.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "orders_status_id_idx" ON "orders"("status", "id");
