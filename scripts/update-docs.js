import { writeFileSync } from 'node:fs';
import { deriveDocs } from './derived-docs.js';
import { deriveMetadata } from './derived-metadata.js';
import { deriveOperatorsDocs } from './operators-docs.js';
import { run, runCheckingTool } from './run-tool.js';

/*
 * Updates everything in the repository that is derived. From the code: the OpenAPI document, and the tables of
 * plans, scopes and operations, and what operators run it with. From package.json: the version and the repository's
 * address. So a change of the contract shows in the diff of a pull request.
 */
const DOCUMENT = 'docs/openapi.json';
const environment = {
  PUBLIC_URL: 'https://store.example.org',
  STAGING_URL: 'https://staging.store.example.org',
};
const stdio = ['pipe', 'pipe', 'inherit'];

run(process.execPath, ['scripts/build.js']);
// Nothing is written before the last tool has been fetched, and has run.
const unformatted = run(process.execPath, ['dist/cli.js', 'openapi'], { environment, stdio });
const format = ['format', `--stdin-file-path=${DOCUMENT}`];
const formatted = String(runCheckingTool('@biomejs/biome', format, { stdio, input: unformatted }));

const { definition } = await import('../dist/definition/definition.js');
const { toPlanTable } = await import('../packages/platform/dist/contract/plans.js');
const document = JSON.parse(formatted);
const texts = {
  [DOCUMENT]: formatted,
  ...deriveDocs(document, definition, toPlanTable(definition)),
  ...deriveMetadata(),
};
for (const [path, text] of Object.entries(texts)) writeFileSync(path, text);
run(process.execPath, ['packages/tools/dist/store-tools.js', 'operate']);
// They repeat what has just been written.
for (const [path, text] of Object.entries(deriveOperatorsDocs())) writeFileSync(path, text);
