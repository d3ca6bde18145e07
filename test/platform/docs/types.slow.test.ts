import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';

const TYPES = 'test/support/openapi-types.ts';

/** Runs a command of tools/, and returns its standard output. */
function runTool(name: string, args: readonly string[], input?: string): string {
  return execFileSync(`tools/node_modules/.bin/${name}`, args, { input, encoding: 'utf8' });
}

test('the types that third parties generate are those of the reviewed document', async () => {
  const source = runTool('openapi-typescript', ['docs/openapi.json']);
  const formatted = runTool('biome', ['format', `--stdin-file-path=${TYPES}`], source);
  expect(await readFile(TYPES, 'utf8'), 'to update them: npm run docs:update').toBe(formatted);
});
