import { spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import openapiTS, { astToString, COMMENT_HEADER } from 'openapi-typescript';
import { expect, expectTypeOf, test } from 'vitest';
import type { ErrorBody } from '../../../src/platform/errors/api-error.js';
import type { components } from '../../support/openapi-types.js';

type Schemas = components['schemas'];

test('the types that third parties generate are those of the reviewed document', async () => {
  const reviewed = JSON.parse(await readFile('docs/openapi.json', 'utf8'));
  const source = COMMENT_HEADER + astToString(await openapiTS(reviewed));
  const formatted = spawnSync(
    'node_modules/.bin/biome',
    ['format', '--stdin-file-path=test/support/openapi-types.ts'],
    {
      input: source,
      encoding: 'utf8',
    },
  );
  const kept = await readFile('test/support/openapi-types.ts', 'utf8');
  expect(kept, 'to update them: npm run docs:update').toBe(formatted.stdout);
});

test('the error that third parties generate a type for is that of the service', () => {
  // Its codes may grow.
  expectTypeOf<ErrorBody>().toExtend<Schemas['Error']>();
  expectTypeOf<keyof Schemas['Error']>().toEqualTypeOf<keyof ErrorBody>();
});
