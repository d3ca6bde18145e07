import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';

/** Packing, and an installation from the registry */
const TIMEOUT_MS = 180_000;
const PACKAGES = join(import.meta.dirname, '../..');
const REPOSITORY = dirname(PACKAGES);
const NAMES = ['batch-loader', 'limits'];
const run = promisify(execFile);

/** What the quick starts say that they print */
const OUTPUT: Readonly<Record<string, string>> = {
  'batch-loader': 'one query for 3\n[ 1, 4, 9 ]\n',
  limits: 'allowed, 2 left\nallowed, 1 left\nallowed, 0 left\ndenied, wait 60 s\n',
};

/** Registers the plugin of the README of limits, and writes what it answers to five requests of one caller. */
const FASTIFY_PROGRAM = `
import Fastify from 'fastify';
import plugin from './plugin.mjs';
const windows = [
  { name: 'minute', lengthMs: 60_000, field: 'perMinute' },
  { name: 'day', lengthMs: 86_400_000, field: 'perDay' },
];
const app = Fastify();
const toSubject = (request) => ({ kind: 'key', id: request.headers.key, limits: { perMinute: 4, perDay: 3 } });
await app.register(plugin, { windows, redisUrls: [], toSubject });
app.get('/', async () => 'ok');
for (let request = 1; request <= 5; request += 1) {
  const { statusCode, headers } = await app.inject({ url: '/', headers: { key: 'a' } });
  console.log(statusCode, headers.ratelimit, Number(headers['retry-after']) > 60);
}
console.log((await app.inject({ url: '/', headers: { key: 'b' } })).statusCode);
await app.close();
`;
const FASTIFY_OUTPUT = [
  '200 "minute";r=3;t=…, "day";r=2;t=… false',
  '200 "minute";r=2;t=…, "day";r=1;t=… false',
  '200 "minute";r=1;t=…, "day";r=0;t=… false',
  // What the day denies costs the minute nothing.
  '429 "minute";r=1;t=…, "day";r=0;t=… true',
  '429 "minute";r=1;t=…, "day";r=0;t=… true',
  '200',
];

/** A TypeScript program with everything that the package exports. */
const PROGRAM = `
import { createLimiter, MAX_SUBJECTS, parseRedisUrls } from '@animal-store/limits';
import type { Limiter, LimiterOptions, Limits, LimitStatus, RateLimitResult, Subject, WindowKind } from '@animal-store/limits';

const minute = { name: 'minute', lengthMs: 60_000, field: 'perMinute' } as const satisfies WindowKind;
const options: LimiterOptions<'perMinute'> = { windows: [minute], redisUrls: parseRedisUrls(''), log: console };
const limiter: Limiter<'perMinute'> = await createLimiter(options);
const limits: Limits<'perMinute'> = { perMinute: MAX_SUBJECTS.key };
const subject: Subject<'perMinute'> = { kind: 'key', id: 'a', limits };
const result: RateLimitResult = await limiter.consume(subject, 1);
export const first: LimitStatus | undefined = result.windows[0];
// @ts-expect-error: no window has this field
await limiter.consume({ kind: 'key', id: 'a', limits: { perDay: 1 } }, 1);
`;

test('a new project can install the packed packages, and their READMEs run there as they say', {
  timeout: TIMEOUT_MS,
}, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'limits-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const project = join(folder, 'project');
  await mkdir(project);
  // As npm init -y writes it
  await writeFile(
    join(project, 'package.json'),
    '{ "name": "project", "version": "1.0.0", "type": "commonjs" }',
  );
  const tarballs = await pack(join(folder, 'sources'));
  const settings = ['--legacy-peer-deps=false', '--prefer-offline', '--no-audit', '--no-fund'];
  await run('npm', ['install', ...settings, ...tarballs], { cwd: project });
  expect(await readdir(join(project, 'node_modules/@animal-store'))).toEqual(NAMES);

  for (const name of NAMES) {
    const readme = await readFile(join(PACKAGES, name, 'README.md'), 'utf8');
    const [, example = ''] = /```js\n(.+?)```/s.exec(readme) ?? [];
    await writeFile(join(project, 'try.mjs'), example);
    expect((await run(process.execPath, ['try.mjs'], { cwd: project })).stdout).toBe(OUTPUT[name]);
  }

  const readme = await readFile(join(PACKAGES, 'limits/README.md'), 'utf8');
  const plugins = Array.from(readme.matchAll(/^```js\n(.+?)^```/gms), ([, code = '']) => code).slice(1);
  expect(plugins).toHaveLength(1);
  await writeFile(join(project, 'plugin.mjs'), plugins.join());
  for (const name of ['fastify', 'fastify-plugin'])
    await symlink(join(REPOSITORY, 'node_modules', name), join(project, 'node_modules', name));
  await writeFile(join(project, 'server.mjs'), FASTIFY_PROGRAM);
  const { stdout } = await run(process.execPath, ['server.mjs'], { cwd: project });
  expect(stdout.trimEnd().replaceAll(/t=\d+/g, 't=…').split('\n')).toEqual(FASTIFY_OUTPUT);

  await writeFile(join(project, 'program.mts'), PROGRAM);
  const compiler = join(REPOSITORY, 'node_modules/typescript/bin/tsc');
  const options = ['--module', 'nodenext', '--target', 'es2023', '--strict', '--noEmit', '--skipLibCheck'];
  await symlink(join(REPOSITORY, 'node_modules/@types'), join(project, 'node_modules/@types'));
  await run(process.execPath, [compiler, ...options, '--types', 'node', 'program.mts'], { cwd: project });
});

/** Packs copies, which proves that they need nothing of the repository but the compiler and its settings. */
async function pack(copy: string): Promise<string[]> {
  const filter = (path: string) => !/\/(dist|node_modules)$/.test(path);
  for (const name of NAMES)
    await cp(join(PACKAGES, name), join(copy, 'packages', name), { recursive: true, filter });
  await cp(join(REPOSITORY, 'tsconfig.base.json'), join(copy, 'tsconfig.base.json'));
  await symlink(join(REPOSITORY, 'node_modules'), join(copy, 'node_modules'));
  const tarballs: string[] = [];
  for (const name of NAMES) {
    const sources = join(copy, 'packages', name);
    const { stdout } = await run('npm', ['pack', '--silent'], { cwd: sources });
    tarballs.push(join(sources, stdout.trim()));
  }
  return tarballs;
}

test('the packages say nothing of the service that they come from, except in names', async () => {
  for (const name of NAMES) {
    const sources = await readdir(join(PACKAGES, name, 'src'), { recursive: true });
    const files = sources.filter((path) => path.endsWith('.ts')).map((path) => join('src', path));
    for (const path of ['README.md', ...files]) {
      const text = (await readFile(join(PACKAGES, name, path), 'utf8')).replaceAll(/@?animal-store[/-]/g, '');
      expect(text.match(/\b(animal|pet)s?\b/gi) ?? [], path).toEqual([]);
    }
  }
});
