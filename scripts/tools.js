/*
 * Brings the build up to date, and runs the tools in the same process: `node scripts/tools.js draft NAME` is
 * `store-tools draft NAME` where the package is installed.
 */
import './build.js';

await import('../packages/tools/dist/store-tools.js');
