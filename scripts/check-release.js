import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildImage } from './release/image.js';
import { checkManifests } from './release/manifests.js';
import { runTool } from './run-tool.js';

/*
 * Checks the upgrade to a release, and its deployment: compose.yaml, the unit of systemd and the Kubernetes manifests
 * against their schemas, and the image by building and running it. Downloads and builds are in a temporary folder.
 */
const NEEDED = ['buildah', 'debootstrap', 'systemd-analyze', 'haproxy', 'curl', 'unshare'];
/** Automake's exit code for a test that cannot run, so that CI can tell it from one that failed. */
const SKIPPED = 77;

process.chdir(join(import.meta.dirname, '..'));
// This needs none of the tools that may be missing here.
const { status: upgrade } = spawnSync('npm', ['run', 'upgrade:check'], { stdio: 'inherit' });
if (upgrade !== 0 && upgrade !== SKIPPED) process.exit(upgrade ?? 1);
const obstacle = findObstacle();
if (obstacle) {
  process.stderr.write(`The release cannot be checked here: ${obstacle}\n`);
  process.exit(SKIPPED);
}

const folder = mkdtempSync(join(tmpdir(), 'animal-store-release-'));
// Runs even when a tool fails, which ends this process, or on Ctrl-C.
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
process.on('SIGINT', () => process.exit(1));
process.on('SIGTERM', () => process.exit(1));
await checkManifests(folder);
const image = buildImage(folder);
const environment = { IMAGE_ROOT: image.root, IMAGE_CONFIG: image.config };
runTool('vitest', ['run', 'test/deploy'], { environment });
process.exitCode = upgrade;

function findObstacle() {
  if (process.platform !== 'linux' || process.getuid() !== 0) return 'it takes Linux and root';
  const missing = NEEDED.filter((program) => !succeeds('sh', '-c', `command -v ${program}`));
  if (missing.length > 0) return `there is no ${missing.join(', no ')} on PATH`;
  if (!succeeds('unshare', '--mount', '--pid', '--fork', 'true')) return 'namespaces are not allowed';
  return undefined;
}

function succeeds(program, ...args) {
  return spawnSync(program, args, { stdio: 'ignore' }).status === 0;
}
