import { execFileSync } from 'node:child_process';
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  createCaller,
  createTemporaryFolder,
  execute,
  freePort,
  type Program,
  post,
  runCommand,
  untilListening,
} from '@animal-store/platform/testing';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { createRoles, hasPsql } from '../packages/platform/test/support/roles.js';
import { hasPostgresTools, SystemPostgres } from '../packages/platform/test/support/system-postgres.js';
import { createStore, install, isSource, withoutSettings } from './support/packed-store.js';

// The tools as a store has them: installed from files, outside of the checkout, on the embedded PostgreSQL.

/** It compiles a dozen times, with a TypeScript that checks types. */
const TIMEOUT_MS = 900_000;
const BUILD_TIMEOUT_MS = 240_000;

let folder: string;
let store: string;
const programs: Program[] = [];

/** A script of the store, in a process group of its own. */
function start(...script: string[]): Program {
  const environment = { PORT: '0', DATA_DIR: join(folder, 'data') };
  const args = ['run', '--silent', ...script];
  const program = runCommand('npm', args, environment, { cwd: store, detached: true });
  programs.push(program);
  return program;
}

async function run(...script: string[]) {
  const program = start(...script);
  return [await program.ended, program.output()];
}

/** Replaces a text of a file of the store, which has it. */
async function edit(path: string, text: string | RegExp, replacement: string): Promise<void> {
  const before = await readFile(join(store, path), 'utf8');
  const after = before.replace(text, replacement);
  expect(after, path).not.toBe(before);
  await writeFile(join(store, path), after);
}

/** The resource of the boats as one of moorings: a list and a create, under another name */
async function addMoorings(): Promise<void> {
  await mkdir(join(store, 'src/moorings'));
  const files = {
    schema: `
      import { assignedId, pageInput, pageOutput, text } from '@animal-store/platform/operations';
      import { z } from 'zod';
      const members = { pier: text(1, 20).meta({ description: 'The pier', examples: ['North'] }) };
      const id = assignedId().meta({ description: 'The id of the mooring', examples: [1] });
      export const mooring = z.object({ id, ...members }).meta({ id: 'Mooring' });
      export const newMooring = z.object(members).meta({ id: 'NewMooring' });
      export const mooringsPage = pageInput({});
      export const mooringList = pageOutput(mooring).meta({ id: 'Moorings', description: 'By ascending id' });
      export type Mooring = z.output<typeof mooring>;
      export type NewMooring = z.output<typeof newMooring>;`,
    store: `
      import type { Database } from '@animal-store/platform/connections';
      import { createInsert, createReads, table } from '@animal-store/platform/tables';
      import type { Mooring, NewMooring } from './schema.js';
      const moorings = table<Mooring, NewMooring>('moorings', { id: 'bigint', pier: 'text' });
      export type MooringStore = ReturnType<typeof createMooringStore>;
      export const createMooringStore = (database: Database) => ({
        ...createReads(database, moorings),
        create: createInsert(database, moorings),
      });`,
    procedures: `
      import { answerPage, type Resource } from '@animal-store/platform/operations';
      import { createProcedure } from '../store.js';
      import { mooring, mooringList, mooringsPage, newMooring } from './schema.js';
      import { createMooringStore, type MooringStore } from './store.js';
      const procedure = createProcedure<{ readonly moorings: MooringStore }>();
      const listMoorings = procedure
        .meta({ openapi: { method: 'GET', path: '/moorings', summary: 'List moorings' }, stability: 'beta', scope: 'moorings:use' })
        .input(mooringsPage)
        .output(mooringList)
        .query(async ({ ctx, input }) => answerPage(ctx, input, await ctx.moorings.list(input)));
      const createMooring = procedure
        .meta({
          openapi: { method: 'POST', path: '/moorings', summary: 'Add a mooring' },
          stability: 'beta', scope: 'moorings:use', success: { status: 201 }, idempotent: true,
        })
        .input(newMooring)
        .output(mooring)
        .mutation(({ ctx, input }) => ctx.once((key) => ctx.moorings.create(input, key)));
      export const moorings = {
        name: 'moorings',
        description: 'Where boats lie',
        createStore: createMooringStore,
        procedures: { listMoorings, createMooring },
      } satisfies Resource<MooringStore>;`,
  };
  for (const [name, text] of Object.entries(files))
    await writeFile(join(store, `src/moorings/${name}.ts`), text);
  await edit(
    'src/router.ts',
    /^import \{ boats.*$/m,
    "$&\nimport { moorings } from './moorings/procedures.js';",
  );
  await edit('src/router.ts', '[boats, ownKey]', '[boats, moorings, ownKey]');
}

beforeAll(async () => {
  folder = await createTemporaryFolder();
  store = join(folder, 'boatyard');
  await createStore(store);
  install(store);
}, TIMEOUT_MS);
afterAll(async () => {
  for (const { child, ended } of programs) {
    child.kill('SIGTERM');
    await ended;
  }
  await rm(folder, { recursive: true, force: true });
});

test('a table, a plan and a scope of a store are drafted, and a start applies them: no SQL is written by hand', {
  timeout: TIMEOUT_MS,
}, async () => {
  await addMoorings();
  await edit(
    'src/definition.ts',
    'enterprise: undefined,',
    'club: { perMinute: 900 },\n    enterprise: undefined,\n    fleet: undefined,',
  );
  await edit('src/definition.ts', "'moves:read']", "'moves:read', 'moorings:use']");
  await edit(
    'prisma/schema.prisma',
    /$/,
    '\nmodel Mooring {\n  id   BigInt @id @default(autoincrement())\n  pier String\n\n  @@map("moorings")\n}\n',
  );
  expect(await run('check')).toEqual([1, expect.stringMatching(/^RED {2}prisma\/.*npm run platform/m)]);
  expect(await run('draft', '--', 'moorings')).toEqual([0, expect.stringContaining('lack moorings: add')]);
  await edit('src/definition.ts', /grants: \{/, "$& moorings: ['SELECT', 'INSERT'],");
  expect(await run('check')).toEqual([0, expect.not.stringContaining('RED')]);

  const service = start('start');
  await expect.poll(service.output, { timeout: BUILD_TIMEOUT_MS }).toMatch(/Bearer/);
  const [, key = '', url = ''] = await service.until(/Bearer (\w+)' '(http:\/\/[\d.:]+)\//);
  const call = createCaller({ url, key });
  const created = await call('/v1/moorings', post({ pier: 'North' }));
  expect([created.status, created.body]).toEqual([201, { id: 1, pier: 'North' }]);
  expect((await call('/v1/moorings')).body).toEqual([created.body]);
  const issue = (...args: string[]) => run('keys', '--', 'create', '--name', 'x', '--json', ...args);
  const [code, issued] = await issue(
    '--plan',
    'fleet',
    '--per-minute',
    '5',
    '--per-day',
    '9',
    '--scopes',
    'moorings:use',
  );
  expect(code, String(issued)).toBe(0);
  expect(JSON.parse(String(issued))).toMatchObject({ plan: 'fleet', scopes: ['moorings:use'] });
  expect((await issue('--plan', 'club'))[0]).toBe(0);
  service.child.kill('SIGTERM');
  expect(await service.ended).toBe(0);
});

/** Whether anything that a program has started still runs */
function isGroupRunning({ child }: Program): boolean {
  try {
    process.kill(-(child.pid as number), 0);
    return true;
  } catch {
    return false;
  }
}

test('dev restarts the service at a change, keeps it through a build that fails, and leaves no process behind', {
  timeout: TIMEOUT_MS,
}, async () => {
  const dev = start('dev');
  const until = (pattern: RegExp) =>
    expect.poll(dev.output, { timeout: BUILD_TIMEOUT_MS, interval: 200 }).toMatch(pattern);
  await until(/ready at http/);
  const [, url = ''] = /ready at (http:\/\/[\d.:]+)/.exec(dev.output()) ?? [];
  await edit('src/definition.ts', "title: 'Boatyard Service'", 'title: 7');
  await until(/src\/definition\.ts.*error[\s\S]*The build failed/);
  expect((await fetch(`${url}/health/ready`)).status).toBe(200);
  await edit('src/definition.ts', 'title: 7', "title: 'Shipyard'");
  await until(/finishing running requests[\s\S]*Shipyard: ready at/);
  await edit('prisma/schema.prisma', /$/, '\n// A comment\n');
  await until(/Shipyard: ready at[\s\S]*Generated Prisma Client/);
  dev.child.kill('SIGTERM');
  await dev.ended;
  await expect.poll(() => isGroupRunning(dev)).toBe(false);
});

/** What a Dockerfile runs to build an image, what it takes of that, and what a container runs. */
function parseDockerfile(text: string) {
  const lines = text.replaceAll('\\\n', ' ').split('\n');
  const list = (pattern: RegExp) => lines.flatMap((line) => pattern.exec(line)?.slice(1) ?? []);
  const [environment = ''] = list(/^ENV (.+)$/);
  const [healthcheck = ''] = list(/^HEALTHCHECK .*CMD (\[.+\])$/);
  return {
    runs: list(/^RUN (?:--\S+ )*(.+)$/),
    copied: list(/^COPY --from=build \/app\/(\S+) /),
    environment: Object.fromEntries(environment.split(/ +/).map((variable) => variable.split(/=(.*)/, 2))),
    healthcheck: JSON.parse(healthcheck) as string[],
  };
}

/** Does in folders what the Dockerfile of the store says. Resolves with that of the image. */
async function buildImage({ runs, copied }: ReturnType<typeof parseDockerfile>): Promise<string> {
  const [build, image] = [join(folder, 'build'), join(folder, 'image')];
  await cp(store, build, { recursive: true, filter: isSource(store) });
  for (const command of runs)
    execFileSync('sh', ['-c', command], { cwd: build, env: withoutSettings(), stdio: 'pipe' });
  for (const path of copied) await cp(join(build, path), join(image, path), { recursive: true });
  return image;
}

test.skipIf(!hasPostgresTools() || !hasPsql())(
  'with what operate writes, a store has its roles, and an image of its own serves as the one without rights',
  { timeout: TIMEOUT_MS },
  async () => {
    expect(await run('operate')).toEqual([0, expect.stringContaining('wrote Dockerfile\n')]);
    const read = (path: string) => readFile(join(store, path), 'utf8');
    const server = await SystemPostgres.startEmpty();
    onTestFinished(() => server.close());
    const { owner, service } = createRoles(server.urlOf(), 'boatyard', await read('docs/deploy/roles.sql'));
    const dockerfile = parseDockerfile(await read('Dockerfile'));
    const image = await buildImage(dockerfile);
    const { NODE_OPTIONS: _of24, ...environment } = dockerfile.environment;
    const start = (args: readonly string[], own: Record<string, string> = {}) => {
      const variables = { ...environment, HOST: '127.0.0.1', PORT, DATABASE_URL: service, ...own };
      const program = runCommand(process.execPath, args, variables, { cwd: image });
      programs.push(program);
      return program;
    };
    const PORT = String(await freePort());
    const command = async (...args: string[]) => {
      const program = start(['dist/cli.js', ...args], args[0] === 'migrate' ? { DATABASE_URL: owner } : {});
      expect(await program.ended, program.output()).toBe(0);
      return program.output();
    };
    await command('migrate', '--grant-to', 'boatyard');
    const key = (await command('keys', 'create', '--name', 'x', '--plan', 'free', '-q')).trim();
    const main = start(['dist/main.js']);
    const call = createCaller({ url: await untilListening(main), key });
    expect((await call('/v1/boats', post({ name: 'Grebe', berth: 8 }))).status).toBe(201);
    await expect(execute(service, 'CREATE TABLE own ()')).rejects.toThrow(/permission denied/);
    const healthy = start(dockerfile.healthcheck.slice(1));
    expect([await healthy.ended, healthy.output()]).toEqual([0, expect.stringContaining('"status":"ok"')]);
    main.child.kill('SIGTERM');
    expect(await main.ended).toBe(0);
    expect(await start(dockerfile.healthcheck.slice(1)).ended).toBe(1);
  },
);
