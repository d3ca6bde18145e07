import '../scripts/node-version.js';
import { runCommand } from '@animal-store/platform/cli';
import { definition } from './definition/definition.js';

// Most commands do not need the resources, and load faster without them.
await runCommand({
  definition,
  loadResources: async () => (await import('./router.js')).resources,
});
