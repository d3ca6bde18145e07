-- Rows become visible in the order of their ids, so that a reader that goes on from the last id it saw misses none. A
-- sequence alone does not give that: a transaction that drew an id first may commit last. So transactions that insert
-- into a table take turns, whether they are the service's, Prisma Studio's or typed in. The trigger runs before the
-- statement draws its first id, and the lock lasts until the transaction is visible.
--
-- All functions of this schema run with the rights of whoever changes the table, are for their own triggers only, and
-- look for nothing in schemas that other roles can write to: temporary objects come last.
CREATE FUNCTION "insert_in_turn"() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pg_advisory_xact_lock('pg_class'::regclass::oid::int, TG_RELID::int);
    RETURN NULL;
END
$$;
REVOKE EXECUTE ON FUNCTION "insert_in_turn"() FROM PUBLIC;
