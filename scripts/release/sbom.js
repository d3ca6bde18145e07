import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { run } from '../run-tool.js';

const WORKSPACES = readdirSync('packages').map((name) => `packages/${name}/package.json`);
const MANIFESTS = ['.npmrc', 'package.json', 'package-lock.json', ...WORKSPACES];

/**
 * Lists what a deployment installs, as CycloneDX: npm's own list of a folder in which `npm ci --omit=dev` ran. In a
 * folder with the development dependencies, `npm sbom --omit=dev` also leaves out packages that one of these needs.
 *
 * @returns the SBOM as JSON
 */
export function createSbom() {
  const temporary = mkdtempSync(join(tmpdir(), 'animal-store-sbom-'));
  // Runs even when npm fails, which ends this process.
  process.on('exit', () => rmSync(temporary, { recursive: true, force: true }));
  // npm calls the application by the name of its folder.
  const folder = join(temporary, 'animal-store');
  for (const path of MANIFESTS) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    cpSync(path, join(folder, path));
  }
  const quiet = ['--ignore-scripts', '--no-audit', '--no-fund', '--silent'];
  run('npm', ['ci', '--prefix', folder, '--omit=dev', ...quiet]);
  describeDeployment(folder);
  const options = ['--sbom-format', 'cyclonedx', '--sbom-type', 'application'];
  return run('npm', ['sbom', '--prefix', folder, ...options], { stdio: ['ignore', 'pipe', 'inherit'] });
}

/** Keeps only the workspaces that the build has copied to dist/, because npm makes no SBOM while something is missing. */
function describeDeployment(folder) {
  const path = join(folder, 'package.json');
  const { devDependencies: _, workspaces, overrides, ...manifest } = JSON.parse(readFileSync(path, 'utf8'));
  const copied = new Set(readdirSync('dist/node_modules/@animal-store').map((name) => `packages/${name}`));
  for (const { name } of workspaces.filter((each) => !copied.has(each)).map(readManifest))
    rmSync(join(folder, 'node_modules', name));
  const ofOthers = Object.entries(overrides).filter(([, version]) => !version.startsWith('$'));
  const deployed = {
    workspaces: workspaces.filter((each) => copied.has(each)),
    overrides: Object.fromEntries(ofOthers),
  };
  writeFileSync(path, JSON.stringify({ ...manifest, ...deployed }));
}

function readManifest(folder) {
  return JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'));
}
