#!/usr/bin/env node
import { describeUnshared } from './shared-packages.js';

/*
 * The command looks first whether what is installed fits: otherwise the platform might not load, and a compiler would say so in
 * a wall of types. `store-tools packages`, which begins each build, does nothing else, and so it loads nothing else.
 */
const unshared = describeUnshared(process.cwd());
if (unshared !== undefined) {
  process.stderr.write(`${unshared}\n`);
  process.exitCode = 1;
} else if (process.argv.slice(2).join(' ') !== 'packages') {
  await import('./command.js');
}
