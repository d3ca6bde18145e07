import { parseArgs } from 'node:util';
import { readNumber, readNumbers } from '../option-values.js';

const OPTIONS = {
  /** Comma-separated parts. Default: all */
  only: { type: 'string' },
  /** Comma-separated numbers of rows, for `pages` and `keys` */
  sizes: { type: 'string' },
  rounds: { type: 'string' },
  /** For each case in a round of `workers` */
  seconds: { type: 'string' },
} as const;

/** Each part has its own default for what is undefined. */
export interface GrowthOptions {
  readonly only: string | undefined;
  readonly sizes: readonly number[] | undefined;
  readonly rounds: number | undefined;
  readonly seconds: number | undefined;
}

export function readOptions(args: string[]): GrowthOptions {
  const { only, sizes, rounds, seconds } = parseArgs({ args, options: OPTIONS }).values;
  return {
    only,
    sizes: sizes === undefined ? undefined : readNumbers('sizes', sizes),
    rounds: rounds === undefined ? undefined : readNumber('rounds', rounds),
    seconds: seconds === undefined ? undefined : readNumber('seconds', seconds),
  };
}
