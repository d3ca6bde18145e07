import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { listMarkdownFiles } from '../../packages/platform/test/support/markdown.js';

const { scripts }: { scripts: Record<string, string> } = JSON.parse(readFileSync('package.json', 'utf8'));

test('no script relies on one that npm skips where ignore-scripts is set', () => {
  const hooks = Object.keys(scripts).filter(
    (name) => scripts[name.replace(/^(?:pre|post)/, '')] !== scripts[name],
  );
  expect(hooks).toEqual([]);
});

test.each([
  'keys',
  'migrate',
  'migrate:check',
  'migrate:draft',
  'seed',
  'openapi',
  'studio',
  'upgrade:check',
  'start',
  'dev',
  'bench',
  'storefront',
])('npm run %s brings its build up to date itself', (name) => {
  const [, script = ''] = /node (?:-\S+ )*(scripts\/\w+\.js)/.exec(scripts[name] ?? '') ?? [];
  const source = readFileSync(script, 'utf8');
  expect(script === 'scripts/build.js' || /^import '\.\/build\.js';$/m.test(source)).toBe(true);
});

/** Of the examples, as documents for stores of others name them */
const ofExamples = readdirSync('examples').flatMap((name) => {
  const path = `examples/${name}/package.json`;
  return existsSync(path) ? Object.keys(JSON.parse(readFileSync(path, 'utf8')).scripts ?? {}) : [];
});

test('every script that a document names exists', () => {
  const named = listMarkdownFiles().flatMap((path) =>
    [...readFileSync(path, 'utf8').matchAll(/npm run (?:-s )?([a-z]+(?::[a-z]+)*)/g)].map(
      ([, name = '']) => name,
    ),
  );
  expect(new Set(named).size).toBeGreaterThan(10);
  const known = [...Object.keys(scripts), ...ofExamples];
  expect(named.filter((name) => !known.includes(name))).toEqual([]);
});

test('npm run check says which steps it has when it is asked for another one', () => {
  const { status, stderr } = spawnSync(process.execPath, ['scripts/check.js', 'tpyes'], { encoding: 'utf8' });
  expect(status).toBe(2);
  for (const step of ['tpyes', '--fix', 'build', 'lint', 'types', 'openapi', 'store'])
    expect(stderr).toContain(step);
});
