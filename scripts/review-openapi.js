import { writeFileSync } from 'node:fs';
import { run, runTool } from './run-tool.js';

/*
 * Writes the OpenAPI document and the types made from it into the repository, so that a change of the contract shows in
 * the diff of a pull request.
 */
const DOCUMENT = 'docs/openapi.json';
const TYPES = 'test/support/openapi-types.ts';
const environment = {
  PUBLIC_URL: 'https://store.example.org',
  STAGING_URL: 'https://staging.store.example.org',
};
const stdio = ['ignore', 'pipe', 'inherit'];

run(process.execPath, ['scripts/build.js']);
writeFileSync(DOCUMENT, run(process.execPath, ['dist/cli/program.js', 'openapi'], { environment, stdio }));
runTool('openapi-typescript', [DOCUMENT, '--default-non-nullable', 'false', '--output', TYPES]);
runTool('@biomejs/biome', ['format', '--write', DOCUMENT, TYPES]);
