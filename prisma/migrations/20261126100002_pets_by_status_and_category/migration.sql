-- A page of one category and status. Requests go on meanwhile. IF NOT EXISTS: a migration before 1.0.0 created the same index.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "pets_status_category_id_id_idx" ON "pets"("status", "category_id", "id");
