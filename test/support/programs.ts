import { createPrograms } from '@animal-store/platform/testing';
import { definition } from '../../src/definition/definition.js';
import { resources } from '../../src/router.js';

/** The programs and commands of the animal store */
export const { programOf, run, runInProcess, runKeys } = createPrograms({ definition, resources });

/** The options of `keys create` for limits that no test reaches. */
export const UNREACHED_LIMITS = [
  ...['--plan', 'enterprise'],
  ...['--per-minute', '1000000'],
  ...['--per-day', '1000000'],
] as const;
