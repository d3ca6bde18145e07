import '../scripts/node-version.js';
import { runCommand } from '@animal-store/platform/cli';

// Most commands do without the resources, which would make them slower to load.
await runCommand({ loadResources: async () => (await import('./router.js')).resources });
