import { readNames } from '../option-values.js';
import { growKeys } from './keys.js';
import { growLimiter } from './limiter-memory.js';
import { type GrowthOptions, readOptions } from './options.js';
import { growPages } from './pages.js';
import { growWorkers } from './workers.js';

const parts = {
  pages: growPages,
  keys: growKeys,
  limiter: growLimiter,
  workers: growWorkers,
} satisfies Record<string, (options: GrowthOptions) => Promise<void>>;

const PART_NAMES = Object.keys(parts) as (keyof typeof parts)[];

/**
 * How the figures change when the store grows. At full size it takes some minutes, and about 3 GB of disk that are
 * freed afterwards.
 */
export async function benchGrowth(args: string[]): Promise<void> {
  const options = readOptions(args);
  const { only = PART_NAMES.join() } = options;
  for (const name of readNames('only', only, PART_NAMES)) await parts[name](options);
}
