import { expectTypeOf, test } from 'vitest';
import type { components } from '../../../../test/support/openapi-types.js';
import type { ErrorBody } from '../../src/errors/api-error.js';

type Schemas = components['schemas'];

test('the error that third parties generate a type for is that of the service', () => {
  // Its codes may grow.
  expectTypeOf<ErrorBody>().toExtend<Schemas['Error']>();
  expectTypeOf<keyof Schemas['Error']>().toEqualTypeOf<keyof ErrorBody>();
});
