/** What a store may use of this room. */
export { runCommand } from './program.js';
