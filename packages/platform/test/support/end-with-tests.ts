export { endWithTests } from '../../../limits/test/support/end-with-tests.js';
