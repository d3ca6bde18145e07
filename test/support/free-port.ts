export { freePort } from '../../packages/limits/test/support/free-port.js';
