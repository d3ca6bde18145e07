-- Rows become visible in the order of their ids, so that a reader that goes on from the last id it saw misses none. A
-- sequence alone does not give that: a transaction that drew an id first may commit last. So transactions that insert
-- into a table take turns, whether they are the service's, Prisma Studio's or typed in. The trigger runs before the
-- statement draws its first id, and the lock lasts until the transaction is visible.
--
-- A turn is an advisory lock of the table and a number, and the sequence TABLE_turns says which number is the current one.
-- Who holds the lock for 300 ms while another statement waits has had its turn: that statement moves the sequence on, so
-- that it and all that follow take turns at the next number, and wait no longer for whoever left a transaction open. Its
-- rows alone may be missed by such a reader. Under load a turn is waited for longer, as long as it passes from one to the
-- next. Whoever keeps holding the next number, too, cannot stop a statement: it inserts without a turn.
--
-- All functions of this schema run with the rights of whoever changes the table, are for their own triggers only, and
-- look for nothing in schemas that other roles can write to: temporary objects come last.
CREATE FUNCTION "insert_in_turn"() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET lock_timeout = '50ms' AS $$
DECLARE
    turns CONSTANT regclass := quote_ident(TG_TABLE_SCHEMA) || '.' || quote_ident(TG_TABLE_NAME || '_turns');
    turn integer;
    holder text;
    last_holder text;
    is_repeated boolean := false;
BEGIN
    LOOP
        turn := coalesce(pg_sequence_last_value(turns), 0);
        holder := NULL;
        last_holder := NULL;
        WHILE NOT pg_try_advisory_xact_lock(TG_RELID::integer, turn) LOOP
            BEGIN
                PERFORM pg_advisory_xact_lock(TG_RELID::integer, turn);
                last_holder := NULL;
                EXIT;
            EXCEPTION WHEN lock_not_available THEN
                last_holder := holder;
            END;
            SELECT concat_ws(' ', pid, virtualtransaction) INTO holder FROM pg_locks
            WHERE locktype = 'advisory' AND (classid, objid, objsubid) = (TG_RELID, turn, 2) AND granted
                AND database = (SELECT oid FROM pg_database WHERE datname = current_database());
            EXIT WHEN holder = last_holder OR turn <> coalesce(pg_sequence_last_value(turns), 0);
            SET LOCAL lock_timeout = '300ms';
        END LOOP;
        -- Another number is current if this one was given up meanwhile: those that follow take turns there.
        IF turn = coalesce(pg_sequence_last_value(turns), 0) THEN
            IF last_holder IS NULL OR holder IS DISTINCT FROM last_holder THEN RETURN NULL; END IF;
            PERFORM setval(turns, turn % 2147483647 + 1);
            RAISE WARNING USING ERRCODE = '01T00', MESSAGE = format(
                'An insert into %I no longer waits for its turn, which process %s has held for 300 ms',
                TG_TABLE_NAME, split_part(holder, ' ', 1));
            IF is_repeated THEN RETURN NULL; END IF;
            is_repeated := true;
        END IF;
        SET LOCAL lock_timeout = '50ms';
    END LOOP;
END
$$;
REVOKE EXECUTE ON FUNCTION "insert_in_turn"() FROM PUBLIC;
