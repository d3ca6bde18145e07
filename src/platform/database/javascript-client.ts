/*
 * Imported by each entry before pg, which would otherwise load pg-native when this variable says so: another client, without what the
 * service needs, such as the state of a transaction, and not installed.
 */
delete process.env.NODE_PG_FORCE_NATIVE;
