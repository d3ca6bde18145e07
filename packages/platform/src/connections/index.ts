/** What a store may use of this room. */
export type { Database } from './client.js';
export { readCode, readConstraint, readUniqueViolation } from './outage.js';
export type { InSchema } from './schema-name.js';
