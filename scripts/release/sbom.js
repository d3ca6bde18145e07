import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { run } from '../run-tool.js';

const WORKSPACES = readdirSync('packages').map((name) => `packages/${name}/package.json`);
const MANIFESTS = ['.npmrc', 'package.json', 'package-lock.json', ...WORKSPACES];

/**
 * Lists what a deployment installs, as CycloneDX: npm's own list of a folder in which `npm ci --omit=dev` ran. In a
 * folder with the development dependencies, `npm sbom --omit=dev` leaves out a package as soon as one of them needs it,
 * too.
 *
 * @returns the SBOM as JSON
 */
export function createSbom() {
  const temporary = mkdtempSync(join(tmpdir(), 'animal-store-sbom-'));
  // Also when npm fails, which ends this process.
  process.on('exit', () => rmSync(temporary, { recursive: true, force: true }));
  // npm calls the application by the name of its folder.
  const folder = join(temporary, 'animal-store');
  for (const path of MANIFESTS) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    cpSync(path, join(folder, path));
  }
  const quiet = ['--ignore-scripts', '--no-audit', '--no-fund', '--silent'];
  run('npm', ['ci', '--prefix', folder, '--omit=dev', ...quiet]);
  // Links to the workspaces: what the service needs of them is in dist/, and the image is without them, too.
  rmSync(join(folder, 'node_modules/@animal-store'), { recursive: true });
  describeDeployment(join(folder, 'package.json'));
  const options = ['--sbom-format', 'cyclonedx', '--sbom-type', 'application'];
  return run('npm', ['sbom', '--prefix', folder, ...options], { stdio: ['ignore', 'pipe', 'inherit'] });
}

/** Removes what is not installed from package.json, because npm makes no SBOM while something is missing. */
function describeDeployment(path) {
  const { devDependencies: _, workspaces: __, ...manifest } = JSON.parse(readFileSync(path, 'utf8'));
  const ofOthers = (versions) =>
    Object.fromEntries(Object.entries(versions).filter(([, version]) => !/^(?:\$|file:)/.test(version)));
  const { dependencies, overrides } = manifest;
  const installed = { dependencies: ofOthers(dependencies), overrides: ofOthers(overrides) };
  writeFileSync(path, JSON.stringify({ ...manifest, ...installed }));
}
