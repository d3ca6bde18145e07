import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const { scripts }: { scripts: Record<string, string> } = JSON.parse(readFileSync('package.json', 'utf8'));

test('no script relies on one that npm skips where ignore-scripts is set', () => {
  const hooks = Object.keys(scripts).filter(
    (name) => scripts[name.replace(/^(?:pre|post)/, '')] !== scripts[name],
  );
  expect(hooks).toEqual([]);
});

test.each(['keys', 'migrate', 'seed', 'openapi', 'studio', 'start', 'dev', 'bench', 'storefront'])(
  'npm run %s brings its build up to date itself',
  (name) => {
    const [, script = ''] = /node (?:-\S+ )*(scripts\/\w+\.js)/.exec(scripts[name] ?? '') ?? [];
    const source = readFileSync(script, 'utf8');
    expect(script === 'scripts/build.js' || /^import '\.\/build\.js';$/m.test(source)).toBe(true);
  },
);
