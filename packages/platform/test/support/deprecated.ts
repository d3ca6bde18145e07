import { definition } from '#operations-under-test';
import { createDeprecated } from './deprecated-operation.js';

/** A deprecated operation of the store under test */
export const deprecated = createDeprecated(definition);
