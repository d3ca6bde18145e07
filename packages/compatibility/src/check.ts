import { readdirSync, readFileSync } from 'node:fs';
import type { Document } from './document.js';
import { type Change, compareDocuments } from './operations.js';
import { RULES } from './rules.js';

/*
 * Compares docs/openapi.json, or the document named on the command line, with that of the last release. Fails when a
 * stable operation has changed against the rules, and lists the changes of experimental ones.
 */
const RELEASES = 'docs/releases';
const [path = 'docs/openapi.json'] = process.argv.slice(2);

const describe = ({ operation, violation }: Change) =>
  `${operation}: ${violation === undefined ? 'changed compatibly' : violation.text}`;

const [last] = readdirSync(RELEASES)
  .sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))
  .slice(-1);
if (last === undefined) throw new Error(`${RELEASES} has no document of a release`);
const [before, after] = [`${RELEASES}/${last}`, path].map((each) =>
  JSON.parse(readFileSync(each, 'utf8')),
) as [Document, Document];

const { breaking, experimental } = compareDocuments(before, after, Date.now());
for (const change of experimental) console.log(`Experimental: ${describe(change)}`);
for (const change of breaking) {
  console.error(
    `Breaking: ${describe(change)}\n  ${RULES[change.violation.rule]} (${change.violation.rule})`,
  );
}
console.log(`${path} against ${RELEASES}/${last}: ${breaking.length} breaking changes`);
if (breaking.length > 0) process.exitCode = 1;
