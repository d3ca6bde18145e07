-- A page of one category. Requests go on meanwhile. IF NOT EXISTS: a migration before 1.0.0 created the same index.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "pets_category_id_id_idx" ON "pets"("category_id", "id");
