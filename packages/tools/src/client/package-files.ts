import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { OperatorError } from '@animal-store/platform/development';

export type Files = Readonly<Record<string, string>>;

/** The package.json of a store, as far as its client repeats it */
export interface StoreManifest {
  readonly name: string;
  readonly version: string;
  readonly license?: string;
  readonly repository?: unknown;
}

/** The folders of a client's modules, by the systems of modules */
const FOLDERS = ['dist', 'dist/cjs'];
const MAIN = 'create-client';
/** The list in client-core of the mutations that take an Idempotency-Key */
const NO_MUTATIONS = 'IDEMPOTENT_MUTATIONS = [];';
/** The list that examples in comments of client-core read */
const EXAMPLE_LIST = 'listItems';

const require = createRequire(import.meta.url);
const CORE = dirname(require.resolve('@animal-store/client-core/package.json'));

export function readStoreManifest(root: string): StoreManifest {
  const manifest: Partial<StoreManifest> = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  for (const member of ['name', 'version'] as const)
    if (typeof manifest[member] !== 'string')
      throw new OperatorError(
        `${join(root, 'package.json')} has no ${member}, which the client takes from it: add one.`,
      );
  return manifest as StoreManifest;
}

/** The modules of client-core with the contract of a store in their midst, by their paths in the package */
export function readModules(contract: string, idempotent: readonly string[], list = EXAMPLE_LIST): Files {
  // A folder of compiled code may also have what earlier sources were compiled to.
  const names = readdirSync(join(CORE, 'src')).map((name) => basename(name, '.ts'));
  const modules = FOLDERS.flatMap((folder) =>
    names
      .flatMap((name) => [`${name}.js`, `${name}.d.ts`])
      .map((file) => {
        const text = readFileSync(join(CORE, folder, file), 'utf8');
        const own = text
          .replace(NO_MUTATIONS, NO_MUTATIONS.replace('[]', JSON.stringify(idempotent)))
          .replaceAll(EXAMPLE_LIST, list);
        return [`${folder}/${file}`, file === 'contract.d.ts' ? contract : own];
      }),
  );
  return { ...Object.fromEntries(modules), 'dist/cjs/package.json': toJson({ type: 'commonjs' }) };
}

/** The package.json of a client, whose peers and Node.js are those of client-core */
export function describePackage(store: StoreManifest, name: string, title: string): string {
  const { engines, peerDependencies } = JSON.parse(readFileSync(join(CORE, 'package.json'), 'utf8'));
  return toJson({
    name,
    version: store.version,
    description: `The typed client of the ${title}, for browsers and Node.js`,
    license: store.license,
    type: 'module',
    sideEffects: false,
    engines,
    exports: {
      '.': {
        require: { types: `./dist/cjs/${MAIN}.d.ts`, default: `./dist/cjs/${MAIN}.js` },
        types: `./dist/${MAIN}.d.ts`,
        default: `./dist/${MAIN}.js`,
      },
    },
    peerDependencies,
    repository: store.repository,
  });
}

export function readLicense(root: string): Files {
  const path = join(root, 'LICENSE');
  return existsSync(path) ? { LICENSE: readFileSync(path, 'utf8') } : {};
}

export function toJson(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}
