import { execFile } from 'node:child_process';
import { mkdir, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createTemporaryFolder } from '@animal-store/platform/testing';
import { THIS_CHECKOUT } from './checkout.js';

const TSC = 'node_modules/typescript-native/bin/tsc';
const FLAGS = ['--ignoreConfig', '--noCheck', '--rootDir', '.', '--module', 'nodenext', '--target', 'es2023'];

export interface CompiledServers {
  /** Has this checkout's layout, with JavaScript in place of TypeScript */
  readonly folder: string;
  close(): Promise<void>;
}

/** Compiles servers of this folder, so that no loader of TypeScript adds to what they need. */
export async function compileServers(names: readonly string[]): Promise<CompiledServers> {
  const folder = await createTemporaryFolder();
  const files = names.map((name) => `bench/${name}.ts`);
  await promisify(execFile)(process.execPath, [TSC, ...FLAGS, '--outDir', folder, ...files], {
    cwd: THIS_CHECKOUT,
  });
  // It is not there if there was nothing to compile.
  await mkdir(join(folder, 'bench'), { recursive: true });
  // package.json says that they are modules, and node_modules leads to the builds of the packages.
  for (const name of ['node_modules', 'bench/node_modules', 'package.json', 'dist']) {
    await symlink(join(THIS_CHECKOUT, name), join(folder, name));
  }
  return { folder, close: () => rm(folder, { recursive: true }) };
}
