import { growKeys } from './growth/keys.js';
import { growLimiter } from './growth/limiter.js';
import { growPages } from './growth/pages.js';
import { growWorkers } from './growth/workers.js';

type Options = ReadonlyMap<string, string>;

const parts: Readonly<Record<string, (options: Options) => Promise<void>>> = {
  pages: growPages,
  keys: growKeys,
  limiter: growLimiter,
  workers: growWorkers,
};

/**
 * What happens to the figures when the store grows. Options: `--only=part,part`, and each part's own.
 * At full size it takes some minutes and about 3 GB of disk, which are freed at the end.
 */
export async function benchGrowth(options: Options): Promise<void> {
  const names = options.get('only')?.split(',') ?? Object.keys(parts);
  for (const name of names) await parts[name]?.(options);
}
