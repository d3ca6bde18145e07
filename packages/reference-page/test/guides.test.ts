import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { GUIDES_FOLDER, listGuides } from '../../../test/guides/code-blocks.js';

interface Guide {
  readonly name: string;
  readonly text: string;
}

const module = await import(pathToFileURL('packages/reference-page/src/guides.js').href);
const appendGuides = (introduction: string, guides: readonly Guide[]): string =>
  module.appendGuides(introduction, guides).description;

const KEYS = { name: '01-keys.md', text: '# Keys\n\n## Next steps\n\nSee [errors](02-errors.md).\n' };

test('guides follow the introduction in the given order', () => {
  const guides = ['# A', '# B'].map((text, index) => ({ name: `${index}.md`, text }));
  expect(appendGuides('# Introduction\n\nText.', guides)).toBe('# Introduction\n\nText.\n\n# A\n\n# B');
});

test('links between guides lead to sections, by file, by heading and within a guide', () => {
  const errors = [
    '# Errors & retries',
    '## The `Retry-After` header',
    '## Next steps',
    '[keys](./01-keys.md), [its next](01-keys.md#next-steps), [my next](#next-steps), [`wait`](#the-retry-after-header)',
  ].join('\n\n');
  const description = appendGuides('# Introduction', [KEYS, { name: '02-errors.md', text: errors }]);
  expect(description).toContain('See [errors](#description/errors-retries).');
  expect(description).toContain(
    '[keys](#description/keys), [its next](#description/next-steps), ' +
      '[my next](#description/next-steps-1), [`wait`](#description/the-retry-after-header)',
  );
});

test('headings are plain text, so that Scalar finds their sections', () => {
  const text = '# The `code` of an *error*\n\n## See [keys](01-keys.md) ##';
  const description = appendGuides('', [{ name: '02.md', text }]);
  expect(description.trim()).toBe('# The code of an error\n\n## See keys');
});

test('addresses stay as they are, and links to other files of the repository become text', () => {
  const text =
    'See [RFC 6750](https://www.rfc-editor.org/rfc/rfc6750) and the [changelog](../../CHANGELOG.md).';
  expect(appendGuides('[JSON](openapi.json)', [{ name: '1.md', text }])).toBe(
    '[JSON](openapi.json)\n\nSee [RFC 6750](https://www.rfc-editor.org/rfc/rfc6750) and the changelog.',
  );
});

test('code stays as it is, whatever it looks like', () => {
  const code = '````md\n# `Not` a heading\n```\n[keys](01-keys.md)\n````';
  const description = appendGuides('', [KEYS, { name: '2.md', text: `${code}\n\n# Not a heading` }]);
  expect(description).toContain(code);
  const link = appendGuides('', [{ name: '2.md', text: `${code}\n# Not a heading\n[up](#not-a-heading)` }]);
  expect(link).toContain('[up](#description/not-a-heading)');
});

test('every link between the guides of the repository leads to a heading, and each has one title', async () => {
  const guides = await Promise.all(
    listGuides().map(async (name) => ({ name, text: await readFile(join(GUIDES_FOLDER, name), 'utf8') })),
  );
  const count = (text: string, pattern: RegExp) => text.match(pattern)?.length ?? 0;
  const description = appendGuides('', guides);
  const links = guides.map(({ text }) => count(text, /\]\((?:(?:\.\/)?[\w-]+\.md)?(?:#[\w-]+)?\)/g));
  expect(count(description, /\]\(#description\//g)).toBe(links.reduce((sum, each) => sum + each, 0));
  for (const { name, text } of guides) {
    const prose = text.replaceAll(/^```.*?^```/gms, '');
    expect([name, text.startsWith('# '), count(prose, /^# /gm)]).toEqual([name, true, 1]);
  }
});

test('a heading of the third level that is a language is a tab of the section before it, any other is a section', () => {
  const text = '# Calls\n\n## Lists\n\n### curl\n\nShort.\n\n### Python\n\nLong.\n\n### Pages\n\nNext.';
  const { description, sections } = module.appendGuides('', [{ name: '1.md', text }]);
  expect(description).toContain('## Lists\n\n**curl**\n\nShort.\n\n**Python**\n\nLong.\n\n### Pages');
  expect(sections.map(({ title }: { title: string }) => title)).toEqual(['Calls', 'Lists', 'Pages']);
});
