export { freePort } from '../../../limits/test/support/free-port.js';
