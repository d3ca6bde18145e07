import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDatabase, createProject, openServer, write } from './support.js';

const FOLDER = fileURLToPath(new URL('..', import.meta.url));

let server: Awaited<ReturnType<typeof openServer>>;
let project: string;
beforeAll(async () => {
  execFileSync('npm', ['run', '--silent', 'build'], { cwd: FOLDER, stdio: 'inherit' });
  server = await openServer();
});
afterAll(() => server.close());

/** The exit code, and everything that a command prints */
function run(cwd: string, args: readonly string[], url = server.url) {
  const env = { PATH: process.env.PATH, HOME: process.env.HOME, DATABASE_URL: url };
  const command = [join(FOLDER, 'dist/store-tools.js'), ...args];
  const { status, stdout, stderr } = spawnSync(process.execPath, command, { cwd, env, encoding: 'utf8' });
  return [status, stdout + stderr];
}

test('wrong usage exits with 2, and says in one line what is right', async () => {
  project = await createProject();
  for (const args of [['draft'], ['draft', 'Boat length'], ['draft', 'one', 'two'], ['sink']])
    expect(run(project, args)).toEqual([2, expect.stringMatching(/^[^\n]+\n$/)]);
});

test('a store that is missing, not built or not as it has to be is one sentence with the command that helps', async () => {
  const folder = await createProject();
  await write(folder, { 'dist/definition.js': 'export const other = 1;' });
  expect(run(folder, ['check'])).toEqual([
    1,
    expect.stringMatching(
      /^The module \.\/dist\/definition\.js does not export definition: .*npm run build.*\n$/,
    ),
  ]);
  await write(folder, { 'dist/definition.js': "import './missing.js';" });
  expect(run(folder, ['check'])).toEqual([
    1,
    expect.stringMatching(/^The module .* cannot be loaded .*npm run build\n$/),
  ]);
  await rm(join(folder, 'dist'), { recursive: true });
  expect(run(folder, ['draft', 'x'])).toEqual([
    1,
    expect.stringMatching(/^The module \.\/dist\/definition\.js is missing: .*npm run build.*"store".*\n$/),
  ]);
  await write(folder, { 'package.json': '{' });
  expect(run(folder, ['check'])).toEqual([
    1,
    expect.stringMatching(/^\S+package\.json cannot be read .*\n$/),
  ]);
  expect(run('/', ['check'])).toEqual([
    1,
    'There is no package.json here or above: run this in the folder of a store.\n',
  ]);
});

test('a draft and the checks run in any folder of a store, and exit with 1 only for what is wrong', async () => {
  const folder = await createProject();
  expect(run(join(folder, 'prisma'), ['check'])).toEqual([1, expect.stringContaining('RED  prisma/ lacks')]);
  expect(run(join(folder, 'prisma'), ['draft', 'first'])).toEqual([
    0,
    expect.stringMatching(
      /^wrote prisma\/migrations\/.*\nwrote prisma\/platform\.prisma\n(wrote .*_first_values.*\nwrote .*_first\/)/ms,
    ),
  ]);
  expect(run(folder, ['check'])).toEqual([0, expect.not.stringContaining('RED')]);
  const empty = await createDatabase(server.url);
  expect(run(folder, ['check', '--database'], empty)).toEqual([
    1,
    expect.stringMatching(/^The schema "public" .* migrate/),
  ]);
});

test('what a store is run with goes to the folder that is named from where the command is called', async () => {
  const folder = await createProject();
  expect(run(join(folder, 'prisma'), ['operate', '../ops'])).toEqual([
    0,
    expect.stringMatching(
      /^wrote compose\.yaml$[\s\S]*^wrote ops\/deploy\/harbour@\.service$[\s\S]*^Alerts lead to the platform's runbooks/m,
    ),
  ]);
  expect(run(folder, ['operate', 'ops'])).toEqual([0, 'All files are as the store says.\n']);
  expect(run(folder, ['operate'])).toEqual([0, expect.stringMatching(/^wrote docs\/deploy\/roles\.sql$/m)]);
  expect(run(folder, ['operate', '.'])).toEqual([0, expect.stringMatching(/^wrote deploy\/roles\.sql$/m)]);
  expect(await readFile(join(folder, 'deploy/roles.sql'), 'utf8')).toContain(' ./deploy/roles.sql ');
});

test('the pages of a store are built with the package that it has installed, and a command says which', async () => {
  const folder = await createProject();
  expect(run(folder, ['pages'])).toEqual([
    0,
    expect.stringMatching(/^wrote dist\/reference-page: the service has it from its next start\. /),
  ]);
  const page = await readFile(join(folder, 'dist/reference-page/page.html'), 'utf8');
  expect(page).toContain('<h1>Harbour</h1>');
  // It has no operation that a page of a key would ask.
  expect(page).not.toContain('docs/key"');
  expect(existsSync(join(folder, 'dist/reference-page/key.html'))).toBe(false);
  await write(folder, { 'docs/guides/1.md': '# Piers\n\n[Locks](2.md)\n' });
  expect(run(folder, ['pages'])).toEqual([
    1,
    'docs/guides: 1.md links to 2.md, which is no heading of a guide\n',
  ]);
  await rm(join(folder, 'node_modules'));
  for (const scope of ['@animal-store', '@trpc'])
    await mkdir(join(folder, 'node_modules', scope), { recursive: true });
  for (const name of ['@animal-store/platform', '@trpc/server', 'zod'])
    await symlink(join(FOLDER, '../../node_modules', name), join(folder, 'node_modules', name));
  expect(run(folder, ['pages'])).toEqual([
    1,
    expect.stringMatching(
      /^The package @animal-store\/reference-page is missing: npm install --save-dev .*\n$/,
    ),
  ]);
});

test('a schema that Prisma refuses is one sentence that says where to look', async () => {
  const folder = await createProject();
  await write(folder, {
    'prisma/schema.prisma': 'datasource db { provider = "postgresql" }\nmodel Boat { id Int }',
  });
  expect(run(folder, ['draft', 'boats']).at(-1)).toMatch(
    /^Prisma refuses the schema .*npx prisma validate shows\.\n$/m,
  );
});

test('a server that cannot be reached is exit code 4', async () => {
  const folder = await createProject();
  expect(run(folder, ['check', '--database'], 'postgresql://nobody@127.0.0.1:9/none')[0]).toBe(4);
});
