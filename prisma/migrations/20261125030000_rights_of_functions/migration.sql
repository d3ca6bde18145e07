-- A SECURITY DEFINER function is a set-uid program: whoever may execute one lends its code the rights of the owner. These
-- run with the rights of whoever changes the table, who therefore needs a grant on what they write; nobody but their own
-- triggers can call them; and they find no object of another role, whatever its name, since temporary ones come last.
ALTER FUNCTION "note_api_key_change"() SECURITY INVOKER;
ALTER FUNCTION "insert_in_turn"() SET search_path = pg_catalog, pg_temp;
DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION "note_api_key_change"() SET search_path = pg_catalog, %I, pg_temp', current_schema());
END
$$;

REVOKE EXECUTE ON FUNCTION "note_api_key_change"(), "insert_in_turn"() FROM PUBLIC;

-- Also where session_replication_role is "replica": for logical replication, and whoever sets it.
ALTER TABLE "api_keys" ENABLE ALWAYS TRIGGER "api_keys_changed";
ALTER TABLE "api_keys" ENABLE ALWAYS TRIGGER "api_keys_truncated";
ALTER TABLE "pets" ENABLE ALWAYS TRIGGER "pets_insert_in_turn";
ALTER TABLE "orders" ENABLE ALWAYS TRIGGER "orders_insert_in_turn";
