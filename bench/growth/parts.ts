import { growKeys } from './keys.js';
import { growLimiter } from './limiter-memory.js';
import { type GrowthOptions, readOptions } from './options.js';
import { growPages } from './pages.js';
import { growWorkers } from './workers.js';

const parts: Readonly<Record<string, (options: GrowthOptions) => Promise<void>>> = {
  pages: growPages,
  keys: growKeys,
  limiter: growLimiter,
  workers: growWorkers,
};

/**
 * How the figures change when the store grows. At full size it takes some minutes, and about 3 GB of disk that are
 * freed afterwards.
 */
export async function benchGrowth(args: string[]): Promise<void> {
  const options = readOptions(args);
  for (const name of options.only ?? Object.keys(parts)) {
    const part = parts[name];
    if (part === undefined) throw new Error(`--only takes ${Object.keys(parts).join(', ')}; not ${name}`);
    await part(options);
  }
}
