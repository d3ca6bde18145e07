import { cpSync, existsSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { run, runTool } from './run-tool.js';

/*
 * Builds the small store of the platform's tests, for the programs that they start and for types: the platform's files in its
 * prisma/, its Prisma client, and dist/ with copies of the packages. Runs after scripts/build.js, and skips what is up to date.
 */
const STORE = 'packages/platform/test/store';
const DIST = join(STORE, 'dist');
const COPIES = join(DIST, 'node_modules/@animal-store');
const BUILT = join(DIST, '.built');
const QUIET = { stdio: ['ignore', 'ignore', 2] };

process.chdir(join(import.meta.dirname, '..'));
const newest = Math.max(...[...listFiles(STORE), 'dist/.compiled'].map((path) => statSync(path).mtimeMs));
if (!existsSync(BUILT) || statSync(BUILT).mtimeMs < newest) build();

function build() {
  rmSync(DIST, { recursive: true, force: true });
  compile();
  cpSync('dist/node_modules/@animal-store', COPIES, { recursive: true });
  run(process.execPath, [join(DIST, 'cli.js'), 'platform'], QUIET);
  runTool('prisma', ['generate', '--config', join(STORE, 'prisma.config.ts')], QUIET);
  compile();
  writeFileSync(BUILT, '');
}

/** Without checking types, which npm run check does. */
function compile() {
  runTool('typescript-native', ['--project', STORE, '--noCheck'], QUIET);
}

function listFiles(folder) {
  const isBuilt = (path) => /^(?:dist|definition\/generated|prisma\/platform\.prisma)/.test(path);
  const paths = readdirSync(folder, { recursive: true }).filter((path) => !isBuilt(path));
  return paths.map((path) => join(folder, path));
}
