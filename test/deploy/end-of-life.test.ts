import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { describeEndOfLife } from '../../packages/platform/src/process/end-of-life.js';

const AFTER_20 = Date.parse('2026-05-01');

test('a version of Node.js that gets no security fixes any more is named, with the one to use', () => {
  const line = describeEndOfLife('20.20.2', AFTER_20);
  expect(line).toBe('Node.js 20.20.2 has been without security fixes since April 2026: use 24');
  expect(describeEndOfLife('20.20.2', Date.parse('2026-04-01'))).toBeUndefined();
  expect(describeEndOfLife('22.13.0', AFTER_20)).toBeUndefined();
  expect(describeEndOfLife('22.13.0', Date.parse('2027-05-01'))).toContain('April 2027');
  for (const version of ['24.0.0', '26.1.0']) expect(describeEndOfLife(version, AFTER_20)).toBeUndefined();
});

test('the version to use is that of .nvmrc, of the image and of the checks of record', () => {
  const [, version] = /use (\d+)$/.exec(describeEndOfLife('20.20.2', AFTER_20) ?? '') ?? [];
  expect(readFileSync('.nvmrc', 'utf8')).toBe(`${version}\n`);
  for (const path of ['Dockerfile', 'packages/tools/operate/Dockerfile'])
    expect(readFileSync(path, 'utf8'), path).toContain(`NODE_IMAGE=node:${version}-`);
  expect(readFileSync('.ci/run', 'utf8')).toContain(`.ci/with-node ${version} npm run verify`);
  expect(readFileSync('.github/workflows/ci.yml', 'utf8')).toContain(`image: node:${version}-`);
});
