export { until } from '../../../limits/test/support/until.js';
