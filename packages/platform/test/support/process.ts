import { createPrograms } from '@animal-store/platform/testing';
import { definition, resources } from '#operations-under-test';

/** The programs and commands of the store under test */
export const { programOf, run, runInProcess, runKeys } = createPrograms({ definition, resources });

/** The address of a module of the platform, as programs of the store load it */
export const builtModule = (path: string) => new URL(`../../dist/${path}`, import.meta.url).href;

/** The options of `keys create` for limits that no test reaches. */
export const UNREACHED_LIMITS = [
  ...['--plan', 'enterprise'],
  ...['--per-minute', '1000000'],
  ...['--per-day', '1000000'],
] as const;
