-- By itself: the transaction that adds a value cannot use it.
ALTER TYPE "order_status" ADD VALUE 'cancelled';
