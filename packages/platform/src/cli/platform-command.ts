import type { Command } from 'commander';
import type { Definition } from '../definition/definition.js';
import { prismaFolderOf } from '../migrations/migrations.js';
import { copyPlatformFiles } from '../migrations/platform-files.js';
import { toInstalledCommands } from '../operator-errors/installed-commands.js';

export function addPlatformCommand(program: Command, definition: Definition): void {
  program
    .command('platform')
    .description('copy the missing models and migrations of the installed platform into prisma/')
    .action(async () => {
      const paths = await copyPlatformFiles(prismaFolderOf(definition.root), definition);
      const lines = paths.map((path) => `wrote prisma/${path}\n`).join('');
      const next = toInstalledCommands(
        definition.root,
        'Commit them. New plans and scopes also need a migration of yours. Apply all with: npm run migrate',
      );
      process.stdout.write(
        paths.length === 0 ? 'prisma/ has all that the installed platform brings.\n' : `${lines}${next}\n`,
      );
    });
}
