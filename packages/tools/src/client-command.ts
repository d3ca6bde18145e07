import { relative } from 'node:path';
import type { Command } from 'commander';
import { findStore } from './store.js';

interface Options {
  readonly out?: string;
  readonly name?: string;
  readonly readme?: string;
}

export function addClientCommand(program: Command): void {
  program
    .command('client')
    .description('pack the typed client of the store for front-ends, which install the file')
    .option('-o, --out <file>', 'where to write it (default: where the service serves it at /client.tgz)')
    .option('-n, --name <name>', "the name of the package (default: the store's with -client after it)")
    .option('--readme <file>', 'its README (default: one that is made of the names of the service)')
    .action(async (options: Options) => {
      const { writeClient } = await import('./client/write-client.js');
      const store = await findStore();
      const { name, version, path } = writeClient({ ...options, ...store });
      process.stdout.write(
        options.out === undefined
          ? `wrote ${path}: ${name} ${version}, which the service serves at /client.tgz\n`
          : `wrote ${options.out}: ${name} ${version}. In a front-end: npm install ${relative('.', options.out)}\n`,
      );
    });
}
