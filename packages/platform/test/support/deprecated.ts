import { definition } from '#operations-under-test';
import { createDeprecated } from '../store/deprecated.js';

/** A deprecated operation of the store under test */
export const deprecated = createDeprecated(definition);
