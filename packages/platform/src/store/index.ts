/** What a store may use of this room. */
export { defineStore } from './define-store.js';
