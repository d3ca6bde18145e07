export { until } from '../../packages/limits/test/support/until.js';
