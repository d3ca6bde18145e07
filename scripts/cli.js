/*
 * The command line, in the process that has brought its build up to date: npm skips the scripts around another, such as
 * `prekeys`, where `ignore-scripts` is set, and an old build would run.
 */
import './build.js';

await import('../dist/cli.js');
