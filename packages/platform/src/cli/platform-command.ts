import type { Command } from 'commander';
import { toInstalledCommands } from '../errors/installed-commands.js';
import { PRISMA_FOLDER } from '../migrations/migrations.js';
import { copyPlatformFiles } from '../migrations/platform-files.js';

export function addPlatformCommand(program: Command): void {
  program
    .command('platform')
    .description('copy the missing models and migrations of the installed platform into prisma/')
    .action(async () => {
      const paths = await copyPlatformFiles(PRISMA_FOLDER);
      const lines = paths.map((path) => `wrote prisma/${path}\n`).join('');
      const next = toInstalledCommands('Commit them, and apply the migrations with: npm run migrate');
      process.stdout.write(
        paths.length === 0 ? 'prisma/ has all that the installed platform brings.\n' : `${lines}${next}\n`,
      );
    });
}
