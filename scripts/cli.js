/*
 * Brings the build up to date and runs the command line in the same process. A script such as `prekeys` would not do,
 * because npm skips it where `ignore-scripts` is set, and an old build would run.
 */
import './build.js';

await import('../dist/cli.js');
