/** What a store may use of this room. */

// What the declarations of a store name, because its procedures and its router are inferred from them.
export type { AnyPrisma, PlatformErrorCode } from '../definition/definition.js';
export type { ErrorBody, ErrorOptions, ErrorShape, FieldErrors } from '../errors/api-error.js';
export type { ErrorDefinition } from '../errors/error-table.js';
export type { ResourceRouter } from '../operations/resource.js';
export type { OwnKey } from '../own-key/schema.js';
export type { CallerKeyStore } from '../own-key/store.js';
export { defineStore } from './define-store.js';
