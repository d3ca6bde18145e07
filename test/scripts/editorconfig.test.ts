import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

test('editors indent and wrap as Biome does', () => {
  const { formatter } = JSON.parse(readFileSync('biome.json', 'utf8'));
  const [, forAll = ''] = readFileSync('.editorconfig', 'utf8').split(/^\[.*\]$/m);
  expect(forAll).toContain(`\nindent_style = ${formatter.indentStyle}\n`);
  expect(forAll).toContain(`\nmax_line_length = ${formatter.lineWidth}\n`);
});
