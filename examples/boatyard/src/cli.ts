import { runCommand } from '@animal-store/platform/cli';
import { definition } from './definition.js';

await runCommand({ definition, loadResources: async () => (await import('./router.js')).resources });
