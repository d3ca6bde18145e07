import '../scripts/node-version.js';
import { runCommand } from '@animal-store/platform/cli';

// Most commands do not need the resources, and load faster without them.
await runCommand({ loadResources: async () => (await import('./router.js')).resources });
