/** What a store may use of this room. */
export type { Definition, Identity, Limits, StoreError, Window } from './definition.js';
