import { type ExecFileException, execFile, execFileSync } from 'node:child_process';
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { hasProgram } from '@animal-store/limits/testing';
import {
  createTemporaryFolder,
  type Environment,
  execute,
  type Program,
  untilListening,
} from '@animal-store/platform/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type KeyServer, startKeyServer, TOKEN } from '../../packages/platform/test/support/key-server.js';
import { run, runKeys } from '../support/programs.js';
import { createTestDatabase } from '../support/service.js';
import { type CodeBlock, findDifference, readCodeBlocks } from './code-blocks.js';
import { answerWithError, startUnreliableProxy } from './unreliable-proxy.js';

/** How a block is run: a program, the name of the file, the arguments before it, and what has to be installed. */
const LANGUAGES: Readonly<
  Record<string, { tool: string; file: string; args: readonly string[]; needs?: string }>
> = {
  bash: { tool: 'bash', file: 'block.sh', args: ['-euo', 'pipefail'] },
  js: { tool: process.execPath, file: 'block.mjs', args: [] },
  ts: {
    tool: process.execPath,
    file: 'block.ts',
    args: ['--conditions=@animal-store/source', '--import', 'tsx'],
  },
  python: { tool: 'python3', file: 'block.py', args: [] },
  // A runtime alone cannot compile.
  java: { tool: 'java', file: 'Block.java', args: [], needs: 'javac' },
  go: { tool: 'go', file: 'block.go', args: ['run'] },
};
/** Languages of samples, such as a body or a header */
const SAMPLES = ['http', 'json', 'text'];
/** A compiler's first run on a busy machine */
const BLOCK_TIMEOUT_MS = 150_000;
/** Longer than the random part of a first wait, which alone would not do */
const DATE_AFTER_MS = 4_000;
/** More than a page of them; the loops of the guide to pagination show the name of the last. */
const MORE_PETS = `INSERT INTO pets (name, category_id)
  SELECT CASE n WHEN 120 THEN 'Zoe' ELSE 'Rex' END, 3 FROM generate_series(1, 120) n ORDER BY n`;

/** What the request of a key's sample is itself, if the process stores its usage just then, as it does every 24 s */
const OWN_USAGE = '{"operation":"getKey","requests":1,"deprecated":false}';

/** The service's address in the guides */
const EXAMPLE_URL = 'https://store.example.org';

const blocks = readCodeBlocks();
const hasTool = new Map(
  Object.values(LANGUAGES).map(({ tool, needs = tool }) => [tool, hasProgram(needs, '--help')]),
);
const runnable = blocks.filter(({ language, notRun }) => notRun === undefined && language in LANGUAGES);

let folder: string;
let environment: Environment;
let service: Program;
let url: string;
/** For programs that issue keys */
let keyServer: KeyServer;

beforeAll(async () => {
  folder = await createTemporaryFolder();
  await symlink(resolve('node_modules'), join(folder, 'node_modules'));
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
  const databaseUrl = await createTestDatabase();
  environment = { DATABASE_URL: databaseUrl, PORT: '0' };
  const seed = run('cli', ['seed'], environment);
  expect(await seed.ended, seed.output()).toBe(0);
  await execute(databaseUrl, MORE_PETS);
  service = run('main', [], environment);
  url = await untilListening(service);
  keyServer = await startKeyServer(environment);
});
afterAll(async () => {
  await keyServer?.stop();
  service?.child.kill('SIGTERM');
  await service?.ended;
  await rm(folder, { recursive: true, force: true });
});

/** Runs a block with a key of its own on the free plan; resolves with what it writes to its standard output. */
async function runBlock(block: CodeBlock, baseUrl: string): Promise<string> {
  const { tool, file, args } = LANGUAGES[block.language] ?? expect.unreachable(block.language);
  const { id, key } = await runKeys(environment, 'create', '--name', 'guide', '--plan', 'free');
  // So that there is a ban to lift; it has ended, so the key can be used.
  await execute(environment.DATABASE_URL ?? '', 'UPDATE api_keys SET banned_until = now() WHERE id = $1', [
    id,
  ]);
  const cwd = join(folder, id);
  await mkdir(cwd);
  // A script of a checkout uses the client that is generated there.
  await symlink(resolve('src'), join(cwd, 'src'));
  // Unless a sample shows what the service responds, a curl that gets an error has to fail.
  await writeFile(join(cwd, '.curlrc'), `silent\nshow-error\n${block.output ? '' : 'fail-with-body\n'}`);
  const code = block.code
    .replaceAll(EXAMPLE_URL, baseUrl)
    .replaceAll('http://127.0.0.1:3000', baseUrl)
    .replaceAll('as_test_…', key)
    .replaceAll(/0b54e7c0(?:-[\da-f]{4}){3}-[\da-f]{12}|0b54e7c0/g, id);
  await writeFile(join(cwd, file), code);
  const variables = {
    ANIMAL_STORE_URL: baseUrl,
    ANIMAL_STORE_KEY: key,
    KEYS_URL: keyServer.url,
    KEYS_TOKEN: TOKEN,
    CURL_HOME: cwd,
    GOTOOLCHAIN: 'local',
  };
  const options = {
    // The commands of the guides are those of a checkout.
    cwd: block.language === 'bash' ? process.cwd() : cwd,
    env: { ...process.env, ...environment, ...variables },
    timeout: BLOCK_TIMEOUT_MS - 10_000,
  };
  return new Promise((finish, fail) => {
    execFile(tool, [...args, join(cwd, file)], options, (error: ExecFileException | null, stdout, stderr) => {
      if (error === null) finish(stdout.replaceAll(baseUrl, EXAMPLE_URL));
      else fail(new Error(`${error.message}\n${stdout}\n${stderr}`));
    });
  });
}

function startProxy(first: 'denied' | 'lost') {
  if (first === 'lost') return startUnreliableProxy(url, ['lost'], 'POST');
  return startUnreliableProxy(url, [answerWithError(429, 'rate_limit_exceeded', { 'retry-after': '1' })]);
}

describe('every code block of the guides and the README runs', () => {
  for (const block of runnable) {
    const { place, language, first, output } = block;
    test.runIf(hasTool.get(LANGUAGES[language]?.tool ?? ''))(
      `${place} (${language})`,
      { timeout: BLOCK_TIMEOUT_MS },
      async () => {
        const proxy = first && (await startProxy(first));
        try {
          const written = (await runBlock(block, proxy?.url ?? url)).replace(OWN_USAGE, '');
          if (output) expect(findDifference(output, written), written).toBeUndefined();
          // Otherwise the block has not tried again.
          if (proxy) expect(proxy.requestCount()).toBeGreaterThan(1);
        } finally {
          proxy?.close();
        }
      },
    );
  }
});

/** All at once, because each waits for seconds. */
describe.concurrent('a sample that waits for Retry-After waits until a date, too, which a proxy may send', () => {
  const waiting = runnable.filter(
    ({ language, code }) => ['js', 'python'].includes(language) && code.includes("'Retry-After'"),
  );
  test('there are such samples in the guides to limits, retries, copies and imports', () => {
    expect(new Set(waiting.map(({ place }) => place.replace(/:.*/, ''))).size).toBe(4);
  });
  for (const block of waiting) {
    test.runIf(hasTool.get(LANGUAGES[block.language]?.tool ?? ''))(
      `${block.place} (${block.language})`,
      { timeout: BLOCK_TIMEOUT_MS },
      async () => {
        let untilMs = Number.POSITIVE_INFINITY;
        let repeatedAtMs = 0;
        const proxy = await startUnreliableProxy(url, [
          async () => {
            const date = new Date(Date.now() + DATE_AFTER_MS).toUTCString();
            untilMs = Date.parse(date);
            return answerWithError(503, 'service_unavailable', { 'retry-after': date });
          },
          async () => {
            repeatedAtMs = Date.now();
            return 'forwarded';
          },
        ]);
        try {
          await runBlock(block, proxy.url);
          expect(repeatedAtMs).toBeGreaterThanOrEqual(untilMs);
        } finally {
          proxy.close();
        }
      },
    );
  }
});

test('every block has a known language, and those that do not run say why', () => {
  const known = [...Object.keys(LANGUAGES), ...SAMPLES];
  expect(blocks.filter(({ language }) => !known.includes(language)).map(({ place }) => place)).toEqual([]);
  const reasons = blocks.flatMap(({ notRun }) => notRun ?? []).sort();
  expect(reasons).toEqual([
    '.ci/run does, from a clean checkout',
    'it needs Claude Code',
    'packages/client/test installs it',
    'src/pets/procedures.ts, with which facts.test.ts compares it',
  ]);
});

test('the TypeScript blocks pass the strict type check', async () => {
  const files = blocks.filter(({ language, notRun }) => language === 'ts' && notRun === undefined);
  expect(files.length).toBeGreaterThan(0);
  const project = join(folder, 'types');
  await mkdir(project);
  await symlink(resolve('src'), join(project, 'src'));
  const names = files.map((_block, index) => `block-${index}.ts`);
  await Promise.all(files.map(({ code }, index) => writeFile(join(project, names[index] ?? ''), code)));
  const compilerOptions = {
    noEmit: true,
    composite: false,
    lib: ['es2023', 'dom'],
    typeRoots: [resolve('node_modules/@types')],
  };
  const settings = { extends: resolve('tsconfig.base.json'), compilerOptions, files: names };
  await writeFile(join(project, 'tsconfig.json'), JSON.stringify(settings));
  execFileSync(process.execPath, [resolve('node_modules/typescript-native/bin/tsc'), '-p', project], {
    stdio: 'inherit',
  });
});
