import { expectTypeOf, test } from 'vitest';
import type { ErrorBody } from '../../packages/platform/src/errors/api-error.js';
import type { components } from '../support/openapi-types.js';

type Schemas = components['schemas'];

test('the error that third parties generate a type for is that of the service', () => {
  // Its codes may grow.
  expectTypeOf<ErrorBody>().toExtend<Schemas['Error']>();
  expectTypeOf<keyof Schemas['Error']>().toEqualTypeOf<keyof ErrorBody>();
});
