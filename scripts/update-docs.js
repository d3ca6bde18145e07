import { readFileSync, writeFileSync } from 'node:fs';
import { updatePlanTable, updateReadme } from './readme.js';
import { run, runTool } from './run-tool.js';

/*
 * Updates everything in the repository's documents that is derived from the code: the OpenAPI document, the types made
 * from it, and the tables of plans and operations in the README and the guide to rate limits. A change of the contract
 * thus shows in the diff of a pull request.
 */
const DOCUMENT = 'docs/openapi.json';
const TYPES = 'test/support/openapi-types.ts';
const README = 'README.md';
const LIMITS_GUIDE = 'docs/guides/04-rate-limits.md';
const environment = {
  PUBLIC_URL: 'https://store.example.org',
  STAGING_URL: 'https://staging.store.example.org',
};
const stdio = ['ignore', 'pipe', 'inherit'];

run(process.execPath, ['scripts/build.js']);
writeFileSync(DOCUMENT, run(process.execPath, ['dist/cli/program.js', 'openapi'], { environment, stdio }));
runTool('openapi-typescript', [DOCUMENT, '--output', TYPES]);
runTool('@biomejs/biome', ['format', '--write', DOCUMENT, TYPES]);

const { toPlanTable } = await import('../dist/contract/plans.js');
const document = JSON.parse(readFileSync(DOCUMENT, 'utf8'));
writeFileSync(README, updateReadme(readFileSync(README, 'utf8'), toPlanTable(), document));
writeFileSync(LIMITS_GUIDE, updatePlanTable(readFileSync(LIMITS_GUIDE, 'utf8'), toPlanTable()));
