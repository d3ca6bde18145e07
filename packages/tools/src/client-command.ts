import { relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import type { Store } from './store.js';

interface Options {
  readonly out?: string;
  readonly name?: string;
  readonly readme?: string;
}

/** @param openStore changes to the folder of the store */
export function addClientCommand(program: Command, openStore: () => Promise<Store>): void {
  program
    .command('client')
    .description('pack the typed client of the store for front-ends, which install the file')
    .option('-o, --out <file>', 'where to write it (default: where the service serves it at /client.tgz)')
    .option('-n, --name <name>', "the name of the package (default: the store's with -client after it)")
    .option('--readme <file>', 'its README (default: one that is made of the names of the service)')
    .action(async ({ out, name, readme }: Options) => {
      const from = process.cwd();
      const { root, definition, resources } = await openStore();
      const fromRoot = (path: string) => relative(process.cwd(), resolve(from, path));
      const files = { ...(out && { out: fromRoot(out) }), ...(readme && { readme: fromRoot(readme) }) };
      const { writeClient } = await import('./client/write-client.js');
      const store = { root: fileURLToPath(root), definition, resources };
      const packed = writeClient({ ...store, ...files, ...(name && { name }) });
      process.stdout.write(
        out === undefined
          ? `wrote ${packed.path}: ${packed.name} ${packed.version}, which the service serves at /client.tgz\n`
          : `wrote ${out}: ${packed.name} ${packed.version}. In a front-end: npm install ${relative(from, resolve(from, out))}\n`,
      );
    });
}
