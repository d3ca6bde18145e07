import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { OperatorError } from '@animal-store/platform/development';
import { toJson } from './package-files.js';

/*
 * A service hands out its client at /client.tgz, which leads to /client-<version>-<hash>.tgz. A lock file holds the address and
 * the checksum of what it installs, so the file at such an address may neither change nor go. The hash is that of the file's
 * bytes, and a store keeps the file of each release in RELEASED, from where every later build of the same major version takes it.
 * The file is kept, not rebuilt: the same bytes would need the same compiler, and a release lacks the sources of earlier ones.
 */
const RELEASED = 'docs/releases/clients';
/** The platform looks for the clients of this and of earlier releases here, and for this one in CURRENT. */
const SERVED = 'dist/clients';
const CURRENT = 'dist/client.json';

/** Puts a client where the service looks for it, beside those of earlier releases. Returns its path in the store. */
export function serveClient(root: string, name: string, version: string, bytes: Uint8Array): string {
  const file = `client-${version}-${hash(bytes)}.tgz`;
  const files = new Map<string, Uint8Array>([...readReleased(root, version), [file, bytes]]);
  const folder = join(root, SERVED);
  mkdirSync(folder, { recursive: true });
  for (const name of readdirSync(folder)) if (!files.has(name)) rmSync(join(folder, name));
  // A file that is there keeps its time, by which a build may tell that it has not changed.
  for (const [name, content] of files)
    if (!existsSync(join(folder, name))) writeFileSync(join(folder, name), content);
  writeFileSync(join(root, CURRENT), toJson({ file, name }));
  return join(SERVED, file);
}

/** The clients of earlier releases of the same major version */
function readReleased(root: string, version: string): [string, Uint8Array][] {
  const folder = join(root, RELEASED);
  if (!existsSync(folder)) return [];
  const major = `client-${version.split('.', 1)}.`;
  const names = readdirSync(folder).filter((name) => name.startsWith(major) && name.endsWith('.tgz'));
  return names.map((name) => {
    const kept = readFileSync(join(folder, name));
    if (!name.endsWith(`-${hash(kept)}.tgz`))
      throw new OperatorError(`${RELEASED}/${name} has changed: restore it.`);
    return [name, kept];
  });
}

function hash(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex').slice(0, 16);
}
