/*
 * Imported by each entry before pg, which would otherwise load pg-native when this variable says so: another client, which
 * is not installed and lacks what the service needs, such as the state of a transaction.
 */
delete process.env.NODE_PG_FORCE_NATIVE;
