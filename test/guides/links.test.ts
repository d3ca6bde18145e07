import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { listHeadings, listLinks, listMarkdownFiles } from '../../packages/platform/test/support/markdown.js';

const files = listMarkdownFiles();
const read = (path: string) => readFileSync(path, 'utf8');
const listAnchors = (path: string) => listHeadings(read(path)).map(({ anchor }) => anchor);

/** About two screens. Guides are shown on the reference page, which has its own contents. */
const LONG_LINES = 100;
const longPages = files.filter(
  (path) => dirname(path) === 'docs' && read(path).split('\n').length > LONG_LINES,
);

describe.each(files)('%s', (path) => {
  const links = listLinks(read(path)).filter((target) => !/^[a-z]+:/.test(target));

  test('links only to files and headings that exist', () => {
    const dead = links.filter((target) => {
      // Where GitHub shows what a workflow has found: beside the files of the repository
      const [, workflow] =
        /^\.\.\/\.\.\/actions\/workflows\/([\w-]+\.yml)(?:\/badge\.svg)?$/.exec(target) ?? [];
      if (workflow !== undefined) return !existsSync(join('.github/workflows', workflow));
      const [page, anchor] = target.split('#');
      const file = page ? join(dirname(path), page) : path;
      if (!existsSync(file)) return true;
      return anchor !== undefined && !listAnchors(file).includes(anchor);
    });
    expect(dead).toEqual([]);
  });

  test('names only files that exist', () => {
    const named = read(path).matchAll(
      /(?<![\w./-])(?:bench|docs|examples|packages|prisma|scripts|src|test)\/[\w./@-]+\.(?:cfg|js|json|jsonc|md|prisma|ts|tsx|yaml)\b/g,
    );
    const folders = ['.', dirname(path)];
    const exists = (name: string) => folders.some((folder) => existsSync(join(folder, name)));
    const unknown = [...named].map(([name]) => name).filter((name) => !exists(name));
    expect(unknown).toEqual([]);
  });
});

test.each(longPages)('%s, which is long, begins with links to its sections', (path) => {
  const sections = listHeadings(read(path)).filter(({ level }) => level === 2);
  const beginning = read(path).slice(0, read(path).indexOf('\n## '));
  const contents = [...beginning.matchAll(/^- \[.+\]\(#(.+?)\)/gm)].map(([, anchor]) => anchor);
  expect(contents).toEqual(sections.map(({ anchor }) => anchor));
});

test('the links beside the forms for issues lead to files of the repository', () => {
  const links = [...read('.github/ISSUE_TEMPLATE/config.yml').matchAll(/url: \S+\/blob\/main\/(\S+)/g)];
  expect(links).not.toEqual([]);
  expect(links.filter(([, path = '']) => !existsSync(path))).toEqual([]);
});
