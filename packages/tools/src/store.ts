import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Definition } from '@animal-store/platform/definition';
import { checkDefinition, checkResources, OperatorError } from '@animal-store/platform/development';
import type { Resource } from '@animal-store/platform/operations';

/** The member `store` of a store's package.json: the paths of what is not where it is by default, relative to its folder. */
interface Settings {
  /** The built module that exports `definition` */
  readonly definition: string;
  /** The built module that exports `resources` */
  readonly router: string;
  /** The built program that serves */
  readonly main: string;
  /** The OpenAPI document, if the store keeps one */
  readonly document: string;
  /** The folder of the documents of releases, by their versions */
  readonly releases: string;
  /** What alerts link to: the file of the store's own runbooks, or the address of their page */
  readonly runbooks: string;
}

const DEFAULTS: Settings = {
  definition: './dist/definition.js',
  router: './dist/router.js',
  main: './dist/main.js',
  document: 'docs/openapi.json',
  releases: 'docs/releases',
  runbooks: 'docs/runbooks.md',
};

/** The folder of a store, and what its package.json says. */
export interface StoreFolder {
  readonly root: URL;
  readonly settings: Settings;
  readonly scripts: Readonly<Record<string, string>>;
  /** The path of a setting */
  pathOf(setting: keyof Settings): string;
  /** How a command of these tools is called here: by the script of the store that ends with it, or by npx */
  commandOf(name: string): string;
}

/** A store that has been built. */
export interface Store extends StoreFolder {
  readonly definition: Definition;
  readonly resources: readonly Resource[];
}

/**
 * The folder of the nearest package.json.
 *
 * @throws OperatorError where there is none, or it cannot be read
 */
export function findStore(from: string): StoreFolder {
  const path = join(from, 'package.json');
  if (!existsSync(path)) {
    if (dirname(from) !== from) return findStore(dirname(from));
    throw new OperatorError('There is no package.json here or above: run this in the folder of a store.');
  }
  const { store, scripts = {} } = readManifest(path);
  const settings: Settings = { ...DEFAULTS, ...store };
  const root = pathToFileURL(`${from}/`);
  return {
    root,
    settings,
    scripts,
    pathOf: (setting) => fileURLToPath(new URL(settings[setting], root)),
    commandOf(name) {
      const [script] = Object.entries(scripts).find(([, text]) => text.endsWith(` ${name}`)) ?? [];
      return script === undefined ? `npx store-tools ${name}` : `npm run ${script} --`;
    },
  };
}

function readManifest(path: string): { store?: Partial<Settings>; scripts?: Record<string, string> } {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new OperatorError(`${path} cannot be read (${(error as Error).message}): mend it.`);
  }
}

/** @throws OperatorError where the store is not built, or its definition or resources cannot be served */
export async function loadStore(folder: StoreFolder): Promise<Store> {
  const definition = await load<Definition>(folder, 'definition', 'definition');
  checkDefinition(definition);
  const resources = await load<readonly Resource[]>(folder, 'router', 'resources');
  checkResources(definition, resources);
  return { ...folder, definition, resources };
}

async function load<T>(
  { settings, pathOf }: StoreFolder,
  setting: 'definition' | 'router',
  member: string,
): Promise<T> {
  const [name, path] = [settings[setting], pathOf(setting)];
  const where = `If it is elsewhere, name its path in package.json: "store": { "${setting}": "./…" }`;
  if (!existsSync(path))
    throw new OperatorError(`The module ${name} is missing: build it with: npm run build. ${where}`);
  const loaded = await import(pathToFileURL(path).href).catch((cause: Error) => {
    const reason = cause.message.split('\n', 1)[0];
    throw new OperatorError(`The module ${name} cannot be loaded (${reason}): build it with: npm run build`, {
      cause,
    });
  });
  if (loaded[member] === undefined)
    throw new OperatorError(
      `The module ${name} does not export ${member}: export it, and build it with: npm run build. ${where}`,
    );
  return loaded[member];
}
