/** What a store may use of this room. */
export { ownKey } from './procedures.js';
