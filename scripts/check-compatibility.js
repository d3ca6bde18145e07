import { readdirSync } from 'node:fs';
import { run } from './run-tool.js';

/*
 * Compares docs/openapi.json, or the document named on the command line, with that of the last release. Fails when a stable
 * or beta operation has changed against the rules, and lists the changes of experimental operations.
 */
const RELEASES = 'docs/releases';
const [path = 'docs/openapi.json'] = process.argv.slice(2);

const last = readdirSync(RELEASES)
  .filter((name) => name.endsWith('.json'))
  .sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))
  .at(-1);
if (last === undefined) throw new Error(`${RELEASES} has no document of a release`);
const command = ['--import', 'tsx', 'packages/compatibility/src/command.ts'];
run(process.execPath, [...command, `${RELEASES}/${last}`, path]);
