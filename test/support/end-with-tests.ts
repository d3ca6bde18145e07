export { endWithTests } from '../../packages/limits/test/support/end-with-tests.js';
