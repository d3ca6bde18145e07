-- "orders_pet_id_id_idx" begins with the same column. IF EXISTS: a migration before 1.0.0 dropped it.
DROP INDEX CONCURRENTLY IF EXISTS "orders_pet_id_idx";
