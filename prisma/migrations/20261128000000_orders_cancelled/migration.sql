-- Not together with what uses it: the transaction that adds a value cannot.
ALTER TYPE "order_status" ADD VALUE 'cancelled';

-- An order is for one animal. Nodes of the previous version name the column in their statements, so a later migration drops it.
ALTER TABLE "orders" ALTER COLUMN "quantity" SET DEFAULT 1;
