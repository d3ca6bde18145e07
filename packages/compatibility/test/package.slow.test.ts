import { execFile, execFileSync } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { RULES } from '../src/rules.js';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const PACKAGE = dirname(import.meta.dirname);
const REPOSITORY = join(PACKAGE, '../..');
const NAME = '@animal-store/compatibility';
const readme = await readFile(join(PACKAGE, 'README.md'), 'utf8');

let folder: string;
let project: string;

/** An empty project with nothing but the packed package. */
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'compatibility-'));
  project = join(folder, 'project');
  await mkdir(project);
  // As npm init -y writes it
  await writeFile(
    join(project, 'package.json'),
    '{ "name": "project", "version": "1.0.0", "type": "commonjs" }',
  );
  const tarball = await pack(join(folder, 'sources'));
  execFileSync('npm', ['install', '--offline', '--no-audit', '--no-fund', tarball], {
    cwd: project,
    stdio: 'pipe',
  });
});
afterAll(() => rm(folder, { recursive: true }));

/** Packs a copy, which proves that it needs nothing of the repository but the compiler and its settings. */
async function pack(copy: string): Promise<string> {
  const sources = join(copy, 'packages/compatibility');
  await cp(PACKAGE, sources, { recursive: true, filter: (path) => !/\/(dist|node_modules)$/.test(path) });
  await cp(join(REPOSITORY, 'tsconfig.base.json'), join(copy, 'tsconfig.base.json'));
  await symlink(join(REPOSITORY, 'node_modules'), join(copy, 'node_modules'));
  const name = execFileSync('npm', ['pack', '--silent'], { cwd: sources, encoding: 'utf8' });
  return join(sources, name.trim());
}

/** Runs the command as a project does. */
function compare(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    execFile('npx', [NAME, ...args], { cwd: project }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr });
    });
  });
}

/** A block of the README. */
function readBlock(language: string, index = 0): string {
  return (
    [...readme.matchAll(/^```(\w+)\n(.+?)^```/gms)].filter(([, each]) => each === language)[index]?.[2] ?? ''
  );
}

test('a new project can install the packed package, and gets it alone', async () => {
  expect(await readdir(join(project, 'node_modules/@animal-store'))).toEqual(['compatibility']);
  const files = await readdir(join(project, 'node_modules', NAME));
  expect(files.sort()).toEqual(['CHANGELOG.md', 'LICENSE', 'README.md', 'dist', 'package.json', 'src']);
});

test('the quick start of the README prints what it says, and exits with 1', async () => {
  await writeFile(join(project, 'old.json'), readBlock('json', 0));
  const [change = '', comparison = ''] = readBlock('bash').split('\n');
  execFileSync('bash', ['-c', change], { cwd: project });
  expect(comparison).toBe(`npx ${NAME} old.json new.json`);
  const { code, stdout, stderr } = await compare('old.json', 'new.json');
  expect(stderr + stdout).toBe(readBlock('text'));
  expect(code).toBe(1);
  expect(await compare('old.json', 'old.json')).toEqual({
    code: 0,
    stdout: 'old.json against old.json: 0 breaking changes\n',
    stderr: '',
  });
});

test('--json prints the same for programs, and nothing else', async () => {
  const { code, stdout, stderr } = await compare('--json', 'old.json', 'new.json');
  expect(JSON.parse(stdout)).toEqual(JSON.parse(readBlock('json', 1)));
  expect([code, stderr]).toEqual([1, '']);
});

test('what cannot be compared is exit code 2, with a sentence that says why', async () => {
  await writeFile(join(project, 'swagger.json'), '{ "swagger": "2.0", "paths": {} }');
  await writeFile(join(project, 'old.yaml'), 'openapi: 3.1.0\n');
  for (const [args, reason] of [
    [[], /^Usage: /],
    [['old.json'], /^Usage: /],
    [['--yaml', 'old.json', 'new.json'], /^Unknown option '--yaml'/],
    [['old.json', 'gone.json'], /^gone\.json cannot be read: ENOENT/],
    [['old.json', 'old.yaml'], /^old\.yaml cannot be read: .*YAML/s],
    [['old.json', 'swagger.json'], /not an OpenAPI 3 document/],
  ] as const) {
    const { code, stdout, stderr } = await compare(...args);
    expect([code, stdout], args.join(' ')).toEqual([2, '']);
    expect(stderr).toMatch(reason);
  }
});

/** A TypeScript program with everything that the package exports. */
const PROGRAM = `
import { compareDocuments, DocumentError, MIN_NOTICE_MONTHS, RULES } from '@animal-store/compatibility';
import type { Change, Comparison, Document, RuleId, Violation } from '@animal-store/compatibility';

const document: Document = { openapi: '3.1.0' };
const { breaking, experimental }: Comparison = compareDocuments(document, document, 0);
export const changes: Change[] = [...breaking, ...experimental];
export const rules: RuleId[] = breaking.map(({ violation }: { violation: Violation }) => violation.rule);
export const text: string = RULES['input-kept'] + MIN_NOTICE_MONTHS;
export const isRefused = (error: unknown): boolean => error instanceof DocumentError;
`;

test('the program of the README runs, and the types of all exports are right', async () => {
  await writeFile(join(project, 'check.mjs'), readBlock('js'));
  const output = execFileSync(process.execPath, ['check.mjs'], { cwd: project, encoding: 'utf8' });
  expect(output).toContain('output-kept');
  await writeFile(join(project, 'program.mts'), PROGRAM);
  const compiler = join(REPOSITORY, 'node_modules/typescript/bin/tsc');
  const options = ['--module', 'nodenext', '--target', 'es2023', '--strict', '--noEmit'];
  execFileSync(process.execPath, [compiler, ...options, 'program.mts'], { cwd: project, stdio: 'pipe' });
});

test('the README has every rule, as the command quotes it', () => {
  for (const [rule, sentence] of Object.entries(RULES))
    expect(readme).toContain(`| \`${rule}\` | ${sentence} |`);
});

test('the package says nothing of the service that it comes from, except in names', async () => {
  const sources = (await readdir(join(PACKAGE, 'src'))).map((name) => join(PACKAGE, 'src', name));
  for (const path of [join(PACKAGE, 'README.md'), ...sources]) {
    const text = (await readFile(path, 'utf8')).replaceAll(/@?animal-store[/-]/g, '');
    expect(text.match(/\b(animal|pet)s?\b/gi) ?? [], path).toEqual([]);
  }
});
