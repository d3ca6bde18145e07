/** What a store may use of this room. */
export { type Changed, createChange } from './changes.js';
export { createClaimingInsert } from './claims.js';
export type { CreateResult, IdempotencyKey } from './idempotency.js';
export { createInsert, type Insert } from './inserts.js';
export { createReads, type Reads } from './reads.js';
export { createRowStatement, type RowStatement, type StatementParts } from './row-statements.js';
export { type Table, table } from './table.js';
export { createTransactions, type Locks, type Transaction, type Transactions } from './transactions.js';
