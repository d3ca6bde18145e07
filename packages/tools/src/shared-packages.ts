import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import semver from 'semver';

const PLATFORM = '@animal-store/platform';

type Ranges = Readonly<Record<string, string>>;

interface Manifest {
  readonly version: string;
  readonly dependencies?: Ranges;
  readonly devDependencies?: Ranges;
  readonly peerDependencies?: Ranges;
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>;
}

/**
 * Whether a store and its platform share one copy of each package whose types meet in the store's code: the platform's peers
 * that are not optional. Loads none of them, because another version may not even load.
 *
 * @param folder of the store, or one in it
 * @returns a sentence with the command that helps; undefined where nothing is wrong, or no platform is installed
 */
export function describeUnshared(folder: string): string | undefined {
  const platform = findPackage(folder, PLATFORM);
  if (platform === undefined) return undefined;
  const { version, peerDependencies = {}, peerDependenciesMeta = {} } = platform.manifest;
  const tried = Object.entries(peerDependencies).filter(([name]) => !peerDependenciesMeta[name]?.optional);
  for (const [name, range] of tried) {
    const [ofStore, ofPlatform] = [folder, platform.folder].map((from) => findPackage(from, name));
    const names = [name, ...listTied(folder, name, ofStore?.manifest.version)];
    const install = `npm install ${names.map((each) => `"${each}@${range}"`).join(' ')}`;
    if (ofStore === undefined || ofPlatform === undefined) return `${name} is not installed: ${install}`;
    const found = `${name} ${ofStore.manifest.version}`;
    if (!semver.satisfies(ofStore.manifest.version, range))
      return `${found} is installed, and ${PLATFORM} ${version} works with ${range}: ${install}`;
    if (ofStore.folder === ofPlatform.folder) continue;
    const second = `${ofPlatform.manifest.version} in ${relative(folder, ofPlatform.folder)}`;
    const mend = /[\\/]node_modules[\\/]/.test(platform.folder)
      ? 'leave one with: npm dedupe'
      : `install it packed, not as a link: npm install FILE.tgz`;
    return `${found} is installed, and ${PLATFORM} has a copy of its own, ${second}: ${mend}`;
  }
  return undefined;
}

/** What the store has in the same version because it needs that one, as tRPC's client needs the server: npm changes only both. */
function listTied(folder: string, name: string, version: string | undefined): string[] {
  const { dependencies, devDependencies } = findPackage(folder, '.')?.manifest ?? {};
  return Object.keys({ ...dependencies, ...devDependencies }).filter((other) => {
    const manifest = findPackage(folder, other)?.manifest;
    return manifest?.version === version && manifest?.peerDependencies?.[name] === version;
  });
}

/** A package as Node.js finds it from a folder, without links. */
function findPackage(from: string, name: string): { folder: string; manifest: Manifest } | undefined {
  try {
    const path = createRequire(join(from, 'package.json')).resolve(`${name}/package.json`);
    return { folder: dirname(path), manifest: JSON.parse(readFileSync(path, 'utf8')) };
  } catch {
    return undefined;
  }
}
