-- Rows become visible in the order of their ids, so that a reader that goes on from the last id it saw misses none. A
-- sequence alone does not give that: a transaction that drew an id first may commit last. So transactions that insert
-- into a table take turns, whether they are the service's, Prisma Studio's or typed in. The trigger runs before the
-- statement draws its first id, and the lock lasts until the transaction is visible.
CREATE FUNCTION "insert_in_turn"() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock('pg_class'::regclass::oid::int, TG_RELID::int);
    RETURN NULL;
END
$$;

CREATE TRIGGER "pets_insert_in_turn" BEFORE INSERT ON "pets" FOR EACH STATEMENT EXECUTE FUNCTION "insert_in_turn"();

CREATE TRIGGER "orders_insert_in_turn" BEFORE INSERT ON "orders" FOR EACH STATEMENT EXECUTE FUNCTION "insert_in_turn"();
