import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describeService } from '@animal-store/platform/development';
import { writePages } from '@animal-store/reference-page';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { definition as animals } from '../../../src/definition/definition.js';
import { resources as animalResources } from '../../../src/router.js';
import { loadBoatyard } from './boatyard.js';

const { definition, resources } = await loadBoatyard();
const GUIDE = '# Moorings\n\n## Bans\n\nNobody is banned from `$BOATYARD_URL`. See [bans](#bans).\n';
const CHANGELOG =
  '# Changelog of the interface\n\n## 1.0.0 - 2026-11-29\n\nThe first, as of [moorings](1.md).\n';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'boatyard-pages-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** What is written for the boatyard whose docs/ has these files, without Scalar's bundle and what is compressed */
async function build(files: Readonly<Record<string, string>> = {}, store = { definition, resources }) {
  const root = await mkdtemp(join(folder, 'store-'));
  await mkdir(join(root, 'docs/guides'), { recursive: true });
  for (const [name, text] of Object.entries(files)) {
    await mkdir(join(root, name, '..'), { recursive: true });
    await writeFile(join(root, name), text);
  }
  const { document } = describeService({ ...store, publicUrl: '', stagingUrl: undefined });
  const output = writePages({ root, identity: store.definition.identity, document });
  const names = (await readdir(join(root, output))).filter((name) => !/\.gz$|^scalar-/.test(name));
  const texts = names.map(async (name) => [name, await readFile(join(root, output, name), 'utf8')] as const);
  return Object.fromEntries(await Promise.all(texts));
}

test('the pages of the animals are those that the build has written', async () => {
  const root = join(folder, 'animals');
  for (const path of ['docs/guides', 'docs/icon.svg', 'dist/client.json'])
    await cp(path, join(root, path), { recursive: true });
  const store = { definition: animals, resources: animalResources };
  const { document } = describeService({ ...store, publicUrl: '', stagingUrl: undefined });
  writePages({ root, identity: animals.identity, document });
  const names = await readdir('dist/reference-page');
  expect(await readdir(join(root, 'dist/reference-page'))).toEqual(names);
  for (const name of names) {
    const [built, written] = await Promise.all(
      ['.', root].map((each) => readFile(join(each, 'dist/reference-page', name))),
    );
    expect(written?.equals(built as Buffer), name).toBe(true);
  }
});

describe.each([
  ['without guides', {}],
  ['with guides', { 'docs/guides/1.md': GUIDE, 'docs/guides/changelog.md': CHANGELOG }],
])('the pages of a boatyard %s', (_, docs) => {
  let files: Readonly<Record<string, string>>;
  beforeAll(async () => {
    files = await build({ ...docs, 'dist/client.json': '{ "file": "client-1.tgz", "name": "moored" }' });
  });

  test('have its own names, and none of the animals or of a template', () => {
    for (const [name, text] of Object.entries(files))
      expect(text.match(/animal|\bpets?\b|\bas_|my-store|my store|my_store|\bms_/i)?.[0], name).toBe(
        undefined,
      );
    expect(files['page.html']).toContain('<h1>Boatyard Service</h1>');
    expect(files['page.html']).toContain("'https://boatyard.example.org/v1/boats?limit=2'");
    expect(files['page.css']).toContain('content: "Boatyard"');
    expect(files['key.html']).toContain('placeholder="by_test_…"');
    expect(files['blocks.js']).toContain('BOATYARD_(?<name>URL|KEY)');
    expect(files['samples.js']).toContain("from 'moored'");
  });

  test('link to what there is', () => {
    const served = new Set([
      ...['../docs', 'docs', 'openapi.json', 'openapi.yaml', 'llms.txt', 'docs/key', 'mcp', 'client-1.tgz'],
      ...Object.keys(files).flatMap((name) => [name, `docs/${name}`]),
      ...('changelog.atom' in files ? ['changelog', 'changelog.atom'] : []),
    ]);
    const ids = new Set([...(files['page.html'] ?? '').matchAll(/ id="([^"]+)"/g)].map(([, id]) => id));
    for (const [name, text] of Object.entries(files).filter(([name]) => /\.(?:html|md|txt)$/.test(name))) {
      const found = text.matchAll(/(?:href|src)="([^"]+)"|\]\(([^)]+)\)/g);
      const targets = [...found].map(([, inHtml, inMarkdown]) => inHtml ?? inMarkdown ?? '');
      expect(targets.length, name).toBeGreaterThan(name.endsWith('.html') ? 3 : 0);
      for (const target of targets.filter((each) => !each.startsWith('https:'))) {
        const [path = '', fragment] = target.split('#');
        if (path !== '') expect([...served], `${name}: ${target}`).toContain(path);
        if (fragment?.includes('/')) expect([...ids], `${name}: ${target}`).toContain(fragment);
      }
    }
  });

  test('tell language models the same', () => {
    expect(files['llms.txt']).toMatch(
      /^# Boatyard Service\n\n> The boats that a yard has for sale, and where they were moved\. REST/,
    );
    expect(files['llms.txt']?.includes('## Guides\n\n- [Moorings](docs/1.md): Bans\n')).toBe('1.md' in files);
    expect(files['index.md']).toMatch(/^# Boatyard Service\n/);
  });
});

test('without guides, nothing speaks of them, and there is no changelog', async () => {
  const files = await build();
  for (const name of ['page.html', 'key.html', 'index.md', 'llms.txt'])
    expect(files[name]?.replace(/href="[^"]+"/g, ''), name).not.toMatch(/guide|changelog(?!, at least)/i);
  expect(Object.keys(files).filter((name) => name.startsWith('changelog'))).toEqual([]);
  expect(JSON.parse(files['guides.json'] ?? '')).toEqual({
    start: expect.stringContaining('[Your\n   key](docs/key)'),
    ...{ description: '', sections: [], synonyms: {} },
  });
});

test('sections of the guides about keys are linked from the page of a key', async () => {
  const [none, all] = [await build(), await build({ 'docs/guides/1.md': GUIDE })];
  expect(none['key.html']).toContain('data-sections=""');
  expect(all['key.html']).toContain('data-sections="#description/bans"');
});

test('a title may have any characters, and a sign of its own takes the place of the one here', async () => {
  const title = `Tom & "Anne's" \\ Boats`;
  const identity = { ...definition.identity, title };
  const own = '<svg/>';
  const files = await build(
    { 'docs/icon.svg': own },
    { definition: { ...definition, identity } as typeof definition, resources },
  );
  expect(files['page.html']).toContain('<h1>Tom &amp; &quot;Anne');
  expect(files['page.css']).toContain(String.raw`content: "Tom & \"Anne's\" \\ Boats"`);
  expect(files['icon.svg']).toBe(own);
});
