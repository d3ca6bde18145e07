import { existsSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runTool } from './run-tool.js';

/*
 * Builds the store on which the platform is tested, for the programs that the tests start and for types: its Prisma client and
 * its dist/. Runs after scripts/build.js, and skips what is up to date. Types are checked by `npm run check`.
 */
const STORE = 'examples/boatyard';
const BUILT = join(STORE, 'dist/.built');

process.chdir(join(import.meta.dirname, '..'));
const sources = ['src', 'prisma'].flatMap((name) => listFiles(join(STORE, name)));
const newest = Math.max(
  ...[...sources, 'node_modules/.package-lock.json'].map((path) => statSync(path).mtimeMs),
);
if (!existsSync(BUILT) || statSync(BUILT).mtimeMs < newest) {
  const quiet = { stdio: ['ignore', 'ignore', 2] };
  rmSync(join(STORE, 'dist'), { recursive: true, force: true });
  runTool('prisma', ['generate', '--config', join(STORE, 'prisma.config.ts')], quiet);
  runTool('typescript-native', ['--project', STORE, '--noCheck', '--declaration', 'false'], quiet);
  writeFileSync(BUILT, '');
}

function listFiles(folder) {
  const paths = readdirSync(folder, { recursive: true }).filter((path) => !path.startsWith('generated'));
  return [folder, ...paths.map((path) => join(folder, path))];
}
