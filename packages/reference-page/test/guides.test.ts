import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { GUIDES_FOLDER, listGuides } from '../../../test/guides/code-blocks.js';

interface Guide {
  readonly name: string;
  readonly text: string;
}

interface Prepared {
  readonly description: string;
  readonly sections: readonly { readonly title: string; readonly text: string; readonly address: string }[];
  readonly html: string;
  readonly markdown: string;
}

const { prepareGuides }: { prepareGuides: (guides: readonly Guide[]) => Prepared } = await import(
  pathToFileURL('packages/reference-page/src/build/guides.js').href
);

const KEYS = { name: '01-keys.md', text: '# Keys\n\n## Next steps\n\nSee [errors](02-errors.md).\n' };
const ERRORS = {
  name: '02-errors.md',
  text: [
    '# Errors & retries',
    '## The `Retry-After` header',
    '## Next steps',
    '[keys](./01-keys.md), [its next](01-keys.md#next-steps), [my next](#next-steps), [`wait`](#the-retry-after-header)',
  ].join('\n\n'),
};

const readGuides = () =>
  Promise.all(
    listGuides().map(async (name) => ({ name, text: await readFile(join(GUIDES_FOLDER, name), 'utf8') })),
  );

test('guides keep the given order, in every form', () => {
  const guides = ['# A', '# B'].map((text, index) => ({ name: `${index}.md`, text }));
  const { description, markdown, html } = prepareGuides(guides);
  expect([description, markdown]).toEqual(['# A\n\n# B', '# A\n\n# B']);
  expect(html).toBe('<h1 id="description/a">A</h1>\n\n<h1 id="description/b">B</h1>\n');
});

test('links between guides lead to sections, by file, by heading and within a guide', () => {
  const { description, html } = prepareGuides([KEYS, ERRORS]);
  expect(description).toContain('See [errors](#description/errors-retries).');
  expect(description).toContain(
    '[keys](#description/keys), [its next](#description/next-steps), ' +
      '[my next](#description/next-steps-1), [`wait`](#description/the-retry-after-header)',
  );
  for (const [, id] of html.matchAll(/href="#([^"]+)"/g)) expect(html).toContain(` id="${id}"`);
});

test('in the page as Markdown, links lead to the single guides', () => {
  expect(prepareGuides([KEYS, ERRORS]).markdown).toContain(
    '[keys](docs/01-keys.md), [its next](docs/01-keys.md#next-steps), ' +
      '[my next](docs/02-errors.md#next-steps), [`wait`](docs/02-errors.md#the-retry-after-header)',
  );
});

test('the path of the page of a key, which is code in the repository, is a link on the page', () => {
  const { html, description, markdown } = prepareGuides([
    { name: '1.md', text: '# A\n\n`/docs/key` shows it.' },
  ]);
  expect(html).toContain('<a href="docs/key"><code>/docs/key</code></a> shows it.');
  for (const text of [description, markdown]) expect(text).toContain('[`/docs/key`](docs/key) shows it.');
});

test('a heading with the name of a section of the page itself gets an address of its own', () => {
  const { sections } = prepareGuides([{ name: '1.md', text: '# A\n\n## Help' }]);
  expect(sections[1]?.address).toBe('#description/help-1');
});

test('headings are plain text, so that Scalar finds their sections', () => {
  const text = '# The `code` of an *error*\n\n## See [keys](01-keys.md) ##';
  const { description } = prepareGuides([
    { name: '02-errors.md', text },
    { name: '01-keys.md', text: '# Keys' },
  ]);
  expect(description).toBe('# The code of an error\n\n## See keys\n\n# Keys');
});

test('addresses stay as they are, and a link to anything else than a guide fails the build', () => {
  const text = 'See [RFC 6750](https://www.rfc-editor.org/rfc/rfc6750).';
  const { description, html } = prepareGuides([{ name: '1.md', text }]);
  expect(description).toBe(text);
  expect(html).toContain('<a href="https://www.rfc-editor.org/rfc/rfc6750">RFC 6750</a>');
  for (const target of ['../../CHANGELOG.md', '01-keys.md#no-such-heading', '#nowhere'])
    expect(() =>
      prepareGuides([
        { name: '01-keys.md', text: '# Keys' },
        { name: '2.md', text: `[x](${target})` },
      ]),
    ).toThrow(`2.md links to ${target}`);
});

test('code stays as it is, whatever it looks like, and no HTML of a guide becomes part of the page', () => {
  const code = '````md\n# `Not` a heading\n```\n[keys](01-keys.md) <script>\n````';
  const link = prepareGuides([
    { name: '2.md', text: `${code}\n\n# Not a heading\n[up](#not-a-heading) <b onclick="x">` },
  ]);
  expect(link.description).toContain(code);
  expect(link.description).toContain('[up](#description/not-a-heading)');
  expect(link.html).toContain('[keys](01-keys.md) &lt;script&gt;');
  expect(link.html).not.toMatch(/<script|<b /);
});

test('what is folded is a part that can be opened, with its links, and its words are found by the search', () => {
  const text =
    '# A\n\n<details>\n<summary>Fine print & more</summary>\n\n- See [keys](01-keys.md).\n\n</details>\n\n## B';
  const { html, description, markdown, sections } = prepareGuides([KEYS, ERRORS, { name: '3.md', text }]);
  expect(html).toContain(
    '<details>\n<summary>Fine print &amp; more</summary>\n<ul>\n' +
      '<li>See <a href="#description/keys">keys</a>.</li>\n</ul>\n</details>\n',
  );
  expect(description).toContain(
    '<details>\n<summary>Fine print & more</summary>\n\n- See [keys](#description/keys).',
  );
  expect(markdown).toContain('- See [keys](docs/01-keys.md).\n\n</details>');
  const found = sections.find(({ title }) => title === 'A');
  expect(found?.text.split('\n').filter(Boolean)).toEqual(['Fine print & more', 'See keys.']);
});

test('HTML that only looks like a folded part stays text', () => {
  for (const block of [
    '<details open>\n<summary>A</summary>',
    '<details>\n<summary><b>A</b></summary>',
    '<details>\n<summary>A</summary><script>',
    '</details><script>',
  ]) {
    const { html } = prepareGuides([{ name: '1.md', text: `# A\n\n${block}\n\n` }]);
    expect([block, html.match(/<(?:details|summary|script|b)\b/)]).toEqual([block, null]);
  }
});

test('every link between the guides of the repository leads to a heading, and each has one title', async () => {
  const guides = await readGuides();
  const { html } = prepareGuides(guides);
  const ids = new Set([...html.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id));
  const links = [...html.matchAll(/href="#([^"]+)"/g)].map(([, id]) => id);
  expect(links.length).toBeGreaterThan(20);
  expect(links.filter((id) => !ids.has(id))).toEqual([]);
  for (const { name, text } of guides) {
    const prose = text.replaceAll(/^```.*?^```/gms, '');
    expect([name, text.startsWith('# '), prose.match(/^# /gm)?.length]).toEqual([name, true, 1]);
  }
});

test('a heading of the third level that is a language is a tab of the section before it, any other is a section', () => {
  const text = '# Calls\n\n## Lists\n\n### curl\n\nShort.\n\n### Python\n\nLong.\n\n### Pages\n\nNext.';
  const { description, sections, html } = prepareGuides([{ name: '1.md', text }]);
  expect(description).toContain('## Lists\n\n**curl**\n\nShort.\n\n**Python**\n\nLong.\n\n### Pages');
  expect(sections.map(({ title }) => title)).toEqual(['Calls', 'Lists', 'Pages']);
  const [, tabs] = /<div class="by-language">\n(.*?)<\/div>/s.exec(html) ?? [];
  expect(tabs).toBe('<h4>curl</h4>\n<p>Short.</p>\n<h4>Python</h4>\n<p>Long.</p>\n');
});
