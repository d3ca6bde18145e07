import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, relative, resolve } from 'node:path';
import type { Definition } from '@animal-store/platform/definition';
import { describeService, OperatorError } from '@animal-store/platform/development';
import type { Resource } from '@animal-store/platform/operations';
import { gzipSync } from 'fflate';
import { createTar } from 'nanotar';
import { printContract } from './contract.js';
import { describeOperations } from './operations.js';
import { describePackage, type Files, readLicense, readModules, readStoreManifest } from './package-files.js';
import { printReadme } from './readme.js';
import type { Document } from './schema.js';
import { serveClient } from './served-clients.js';

export interface ClientOptions {
  /** The folder of the store: its package.json and LICENSE, and dist/, from which its service serves the client */
  readonly root: string;
  readonly definition: Definition;
  readonly resources: readonly Resource[];
  /** Of the package. Default: the store's with `-client` after it */
  readonly name?: string | undefined;
  /** A file in place of a README that is made of the names of the service */
  readonly readme?: string | undefined;
  /** Where to write the packed client. Default: where the service serves it at /client.tgz */
  readonly out?: string | undefined;
}

export interface WrittenClient {
  readonly name: string;
  readonly version: string;
  /** Of the packed file, as seen from the store */
  readonly path: string;
  /** What is packed, by its path in the package */
  readonly files: Files;
}

const PACKAGE_NAME = /^(?:@[a-z\d][\w.-]*\/)?[a-z\d][\w.-]*$/;
/** npm's own date for packed files, and no owner. */
const ATTRIBUTES = { mtime: Date.UTC(1985, 9, 26, 8, 15), mode: '644', uid: 0, gid: 0, user: '', group: '' };

/**
 * Makes the typed client of a store, and packs it.
 *
 * The bytes depend on the store and on client-core alone, not on a machine. So npm does not pack: its output depends on its own
 * version and on the zlib of Node.js, which compresses differently from version to version and processor to processor.
 *
 * @throws OperatorError for what the caller can mend
 */
export function writeClient(options: ClientOptions): WrittenClient {
  const { root, out } = options;
  const store = readStoreManifest(root);
  const { name = `${store.name}-client` } = options;
  if (!PACKAGE_NAME.test(name))
    throw new OperatorError(`${JSON.stringify(name)} cannot be the name of a package.`);
  if (out !== undefined && !out.endsWith('.tgz'))
    throw new OperatorError(`${out} does not end in .tgz, by which npm knows a packed package.`);
  const { title } = options.definition.identity;
  const files = {
    'package.json': describePackage(store, name, title),
    ...readLicense(root),
    ...generate(options, name),
  };
  const bytes = pack(files);
  const { version } = store;
  if (out === undefined) return { name, version, path: serveClient(root, name, version, bytes), files };
  const path = resolve(out);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, bytes);
  return { name, version, path: relative(root, path), files };
}

/** What is made of the definition and the operations: the modules, and the README unless there is one */
function generate({ definition, resources, readme }: ClientOptions, name: string): Files {
  if (readme !== undefined && !existsSync(readme)) throw new OperatorError(`There is no file ${readme}.`);
  const service = describeService({ definition, resources, publicUrl: '', stagingUrl: undefined });
  const document = service.document as Document;
  const operations = describeOperations(document, service.operations);
  const { identity, scopes } = definition;
  const contract = printContract(document, operations, { errors: service.errors, scopes });
  const idempotent = operations
    .filter((operation) => operation.idempotent)
    .map((operation) => operation.name);
  const lists = operations.filter(
    ({ mayLackInput, parameters }) =>
      mayLackInput && parameters.some((parameter) => parameter.name === 'cursor'),
  );
  const list = lists.find((operation) => operation.name === identity.mainOperation) ?? lists[0];
  const { title, keyPrefix } = identity;
  return {
    ...readModules(contract, idempotent, list?.name),
    'README.md':
      readme === undefined
        ? printReadme({ name, title, keyPrefix, list }, operations)
        : readFileSync(readme, 'utf8'),
  };
}

function pack(files: Files): Uint8Array {
  const entries = Object.entries(files)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, data]) => ({ name: `package/${name}`, data }));
  return gzipSync(createTar(entries, { attrs: ATTRIBUTES }), { level: 9, mtime: 0 });
}
