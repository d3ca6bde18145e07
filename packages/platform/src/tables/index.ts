/** What a store may use of this room. */
export { createChange } from './changes.js';
export { createClaimingInsert } from './claims.js';
export type { IdempotencyKey } from './idempotency.js';
export { createInsert } from './inserts.js';
export { createReads } from './reads.js';
export { createRowStatement, type StatementParts } from './row-statements.js';
export { table } from './table.js';
export { createTransactions } from './transactions.js';
