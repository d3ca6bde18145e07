import { runCommand } from '@animal-store/platform/cli';

await runCommand({ loadResources: async () => (await import('./router.js')).resources });
