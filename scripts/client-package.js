import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';

/* The typed client of this store, which packages/tools makes as that of any other. */
const CLIENT = 'packages/client';
const README = `${CLIENT}/README.md`;
/** Every later release of the same major version serves what is here. */
const RELEASED = 'docs/releases/clients';
/** Says which of the files in dist/clients fits this service. */
export const CURRENT_CLIENT = 'dist/client.json';

/** What the client depends on beside the compiled code. The folder itself is newer than the client when a file was removed. */
export function listClientSources() {
  const released = existsSync(RELEASED) ? ['.', ...readdirSync(RELEASED)] : [];
  return ['package.json', 'LICENSE', README, ...released.map((name) => join(RELEASED, name))];
}

/** The path of the packed client that fits this service, once it is built. */
export function findCurrentClient() {
  return join('dist/clients', readCurrentClient());
}

/** The name of its file */
function readCurrentClient() {
  return JSON.parse(readFileSync(CURRENT_CLIENT, 'utf8')).file;
}

/** Packs the client for /client.tgz, and leaves its modules where the tests of this repository import them. */
export async function packClient() {
  // Loaded here, because they have to be compiled first, and a production install lacks the tools.
  const [{ writeClient }, { definition }, { resources }] = await Promise.all([
    import('@animal-store/tools/client'),
    import('../dist/definition/definition.js'),
    import('../dist/router.js'),
  ]);
  const store = { root: '.', definition, resources };
  const { files } = writeClient({ ...store, name: '@animal-store/client', readme: README });
  rmSync(join(CLIENT, 'dist'), { recursive: true, force: true });
  for (const [path, text] of Object.entries(files).filter(([name]) => name.startsWith('dist/'))) {
    mkdirSync(join(CLIENT, dirname(path)), { recursive: true });
    writeFileSync(join(CLIENT, path), text);
  }
}

/** Keeps the client that was built last for later releases. Returns the path of the copy. */
export function keepClient() {
  const copy = join(RELEASED, readCurrentClient());
  mkdirSync(RELEASED, { recursive: true });
  copyFileSync(findCurrentClient(), copy);
  return copy;
}
