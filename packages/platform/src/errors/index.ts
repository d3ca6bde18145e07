/** What a store may use of this room. */
export { ApiError } from './api-error.js';
