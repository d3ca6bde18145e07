import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Definition } from '@animal-store/platform/definition';
import type { Resource } from '@animal-store/platform/operations';
import { ToolError } from './tool-error.js';

export interface Store {
  /** The folder of its package.json */
  readonly root: string;
  readonly definition: Definition;
  readonly resources: readonly Resource[];
}

/** Where a build puts them, unless the member `store` of package.json says otherwise */
const MODULES = { definition: './dist/definition.js', router: './dist/router.js' };

/** Loads the store in the working directory or the nearest folder above it. */
export async function findStore(): Promise<Store> {
  const root = findRoot(process.cwd());
  const { store } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const modules: typeof MODULES = { ...MODULES, ...store };
  const load = async (path: string) => {
    const file = join(root, path);
    if (!existsSync(file))
      throw new ToolError(
        `There is no ${file}. Build the store first; if it is elsewhere, say where in package.json: "store": ${JSON.stringify(MODULES)}.`,
      );
    return import(pathToFileURL(file).href);
  };
  const { definition } = await load(modules.definition);
  const { resources } = await load(modules.router);
  if (definition === undefined) throw new ToolError(`${modules.definition} does not export \`definition\`.`);
  if (resources === undefined) throw new ToolError(`${modules.router} does not export \`resources\`.`);
  return { root, definition, resources };
}

function findRoot(folder: string): string {
  if (existsSync(join(folder, 'package.json'))) return folder;
  const above = dirname(folder);
  if (above === folder)
    throw new ToolError('There is no package.json here or above: go to the folder of a store.');
  return findRoot(above);
}
