import { readFileSync, writeFileSync } from 'node:fs';
import { keepClient } from './client-package.js';
import { run } from './run-tool.js';

/*
 * `npm run release -- 1.2.3`: runs every check, dates the changelog, commits, tags, and leaves what belongs to a release in
 * dist/release/: the client, which the repository also keeps for later releases to serve, the libraries, and the SBOM of a
 * deployment. Nothing is pushed.
 */
const [version = ''] = process.argv.slice(2);
const OUTPUT = 'dist/release';

function fail(message) {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}

/** Replaces a text that occurs exactly once. */
function edit(path, text, replacement) {
  const parts = readFileSync(path, 'utf8').split(text);
  if (parts.length !== 2) fail(`${path} must contain "${text}" once.`);
  writeFileSync(path, parts.join(replacement));
}

const read = { stdio: ['ignore', 'pipe', 'inherit'] };
if (!/^\d+\.\d+\.\d+$/.test(version)) fail('Usage: npm run release -- MAJOR.MINOR.PATCH');
if (String(run('git', ['status', '--porcelain'], read)) !== '') fail('Commit or remove your changes first.');
if (String(run('git', ['tag', '--list', `v${version}`], read)) !== '') fail(`v${version} exists already.`);

const { version: current } = JSON.parse(readFileSync('package.json', 'utf8'));
if (current !== version) edit('package.json', `"version": "${current}"`, `"version": "${version}"`);
for (const folder of ['.', 'packages/compatibility', 'packages/embedded-postgres']) {
  const date = new Date().toISOString().slice(0, 10);
  edit(`${folder}/CHANGELOG.md`, `## ${version} - unreleased`, `## ${version} - ${date}`);
}
run('npm', ['run', 'docs:update']);
run('npm', ['run', 'verify']);
run('npm', ['run', 'release:check']);
const client = keepClient();
run('git', ['add', client]);
run('git', ['commit', '--all', '--message', `Release ${version}`]);
run('git', ['tag', '--annotate', `v${version}`, '--message', `Release ${version}`]);

run(process.execPath, ['scripts/release/artifacts.js', OUTPUT]);
process.stdout.write(
  `\nv${version} is tagged. Push it, attach the files in ${OUTPUT}/, and build the image:\n` +
    `  docker build --build-arg VERSION=${version} --build-arg REVISION=$(git rev-parse HEAD) --tag animal-store:${version} .\n`,
);
