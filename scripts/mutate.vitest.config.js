import { statSync } from 'node:fs';
import { basename } from 'node:path';
import { BaseSequencer } from 'vitest/node';
import config from '../vitest.config.ts';

/** The first failure ends the run for a mutant: the test file of its own name comes first, then the short ones. */
class LikelyFirst extends BaseSequencer {
  async sort(files) {
    const own = basename(process.env.MUTATED_FILE).replace(/\.ts$/, '.test.ts');
    const rank = ({ moduleId }) => (basename(moduleId) === own ? 0 : statSync(moduleId).size);
    return files.toSorted((one, other) => rank(one) - rank(other));
  }
}

export default { ...config, test: { ...config.test, sequence: { sequencer: LikelyFirst } } };
