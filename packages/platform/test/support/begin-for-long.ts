/** Of a transaction on a connection of the service, which PostgreSQL would end after five seconds without a statement. */
export const BEGIN_FOR_LONG = 'BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0';
