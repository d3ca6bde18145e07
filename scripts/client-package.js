import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { run } from './run-tool.js';

/*
 * Packs the typed client for /client-<version>-<hash>.tgz.
 *
 * A lock file holds the address and the checksum of what it installs, so the file at such an address may neither change
 * nor go. The hash is that of the file's bytes, and releases keep their file in docs/releases/clients, from where every
 * later build of the same major version takes it. The file is kept, not rebuilt: the same bytes would need the same
 * compiler, and a release does not have the sources of earlier ones.
 *
 * The bytes depend on the sources alone, not on a machine. So npm does not pack: its output depends on its own version
 * and on the zlib of Node.js, which compresses differently from version to version and processor to processor.
 */
const CLIENT = 'packages/client';
const RELEASED = 'docs/releases/clients';
const OUTPUT = 'dist/clients';
/** Says which of the files in OUTPUT fits this service. */
export const CURRENT_CLIENT = 'dist/client.json';

const COMPILATIONS = {
  dist: [],
  'dist/cjs': ['--module', 'commonjs', '--verbatimModuleSyntax', 'false'],
};
/** Resolves to the sources, which are not packed. */
const SOURCE_CONDITION = '@animal-store/source';
/** npm's own date for packed files, and no owner. */
const ATTRIBUTES = { mtime: Date.UTC(1985, 9, 26, 8, 15), mode: '644', uid: 0, gid: 0, user: '', group: '' };

/** The files that the packed client depends on. */
export function listClientSources() {
  const sources = readdirSync(join(CLIENT, 'src')).map((name) => join('src', name));
  const own = ['src', ...sources, 'package.json', 'tsconfig.json', 'README.md', 'LICENSE'];
  const released = listReleased().map((name) => join(RELEASED, name));
  return [
    ...own.map((name) => join(CLIENT, name)),
    // The folder itself is newer than the package when a file was removed.
    ...(existsSync(RELEASED) ? [RELEASED, ...released] : []),
    ...['tsconfig.base.json', 'scripts/client-package.js'],
  ];
}

/** The name of the packed client that fits this service, once it is built. */
export function readCurrentClient() {
  return JSON.parse(readFileSync(CURRENT_CLIENT, 'utf8')).file;
}

/** Packs the client, and puts the clients of earlier releases beside it. Writes CURRENT_CLIENT last. */
export async function packClient() {
  // Loaded here, because a production install, which builds nothing, lacks them.
  const [{ gzipSync }, { createTar }] = await Promise.all([import('fflate'), import('nanotar')]);
  compile();
  const manifest = describePackage();
  const files = {
    'package.json': toJson(manifest),
    'dist/cjs/package.json': toJson({ type: 'commonjs' }),
    ...readFiles('.', ['LICENSE', 'README.md']),
    ...Object.assign(
      {},
      ...Object.keys(COMPILATIONS).map((folder) => readFiles(folder, listModules(folder))),
    ),
  };
  const entries = Object.keys(files)
    .sort()
    .map((name) => ({ name: `package/${name}`, data: files[name] }));
  const bytes = gzipSync(createTar(entries, { attrs: ATTRIBUTES }), { level: 9, mtime: 0 });

  const file = `client-${manifest.version}-${hash(bytes)}.tgz`;
  rmSync(OUTPUT, { recursive: true, force: true });
  mkdirSync(OUTPUT, { recursive: true });
  const major = `client-${manifest.version.split('.', 1)}.`;
  for (const name of listReleased().filter((name) => name.startsWith(major))) {
    const kept = readFileSync(join(RELEASED, name));
    if (!name.endsWith(`-${hash(kept)}.tgz`)) throw new Error(`${RELEASED}/${name} has changed: restore it`);
    writeFileSync(join(OUTPUT, name), kept);
  }
  writeFileSync(join(OUTPUT, file), bytes);
  writeFileSync(CURRENT_CLIENT, toJson({ file }));
}

/** Keeps the client that was built last for later releases. Returns the path of the copy. */
export function keepClient() {
  const file = readCurrentClient();
  mkdirSync(RELEASED, { recursive: true });
  copyFileSync(join(OUTPUT, file), join(RELEASED, file));
  return join(RELEASED, file);
}

function listReleased() {
  return existsSync(RELEASED) ? readdirSync(RELEASED).filter((name) => name.endsWith('.tgz')) : [];
}

function compile() {
  rmSync(join(CLIENT, 'dist'), { recursive: true, force: true });
  for (const [folder, options] of Object.entries(COMPILATIONS)) {
    const output = ['--outDir', join(CLIENT, folder)];
    const args = [
      'node_modules/typescript-native/bin/tsc',
      '--project',
      CLIENT,
      '--noCheck',
      ...options,
      ...output,
    ];
    run(process.execPath, args, { stdio: ['ignore', 2, 2] });
  }
}

/** The manifest without the members that only this repository uses. */
function describePackage() {
  const { exports, ...manifest } = JSON.parse(readFileSync(join(CLIENT, 'package.json'), 'utf8'));
  const { [SOURCE_CONDITION]: _, ...conditions } = exports['.'];
  // The package is private because npm would publish it without its code.
  return { ...manifest, private: undefined, exports: { '.': conditions } };
}

function listModules(folder) {
  return readdirSync(join(CLIENT, folder)).filter((name) => /\.(?:js|d\.ts)$/.test(name));
}

function readFiles(folder, names) {
  return Object.fromEntries(
    names.map((name) => [join(folder, name), readFileSync(join(CLIENT, folder, name))]),
  );
}

function hash(bytes) {
  return createHash('sha256').update(bytes).digest('hex').slice(0, 16);
}

function toJson(value) {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}
