-- Rows that the service adds become visible in the order of their ids, so that a reader that goes on from the last id it saw
-- misses none. A sequence alone does not give that: a transaction that drew an id first may commit last. So a statement of
-- the service locks the row of its table here before it draws ids, and the lock lasts until the transaction is visible.
--
-- Nothing changes a row: whoever has no UPDATE on this table can hold nobody up. Transactions of others that insert into the
-- table do not take a turn, and neither wait nor are waited for.
CREATE TABLE "insert_turns" (
    "table_name" TEXT NOT NULL,

    CONSTRAINT "insert_turns_pkey" PRIMARY KEY ("table_name")
);
