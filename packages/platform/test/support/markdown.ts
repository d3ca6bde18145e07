import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Folders without documents of this repository. */
const OTHERS = /(^|\/)(node_modules|dist|\.git|\.data)(\/|$)/;

/** The paths of all Markdown files of the repository. */
export function listMarkdownFiles(folder = '.'): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (OTHERS.test(path)) return [];
    if (entry.isDirectory()) return listMarkdownFiles(path);
    return entry.name.endsWith('.md') ? [path] : [];
  });
}

export interface Heading {
  readonly level: number;
  /** The part of an address that leads to it, as GitHub writes it */
  readonly anchor: string;
}

export function listHeadings(markdown: string): Heading[] {
  const seen = new Map<string, number>();
  return [...withoutCodeBlocks(markdown).matchAll(/^(#+) (.+)$/gm)].map(
    ([, { length: level } = '', text = '']) => {
      const anchor = text
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-');
      const repetitions = seen.get(anchor) ?? 0;
      seen.set(anchor, repetitions + 1);
      return { level, anchor: repetitions === 0 ? anchor : `${anchor}-${repetitions}` };
    },
  );
}

/** The targets of links and images. */
export function listLinks(markdown: string): string[] {
  const text = withoutCodeBlocks(markdown).replaceAll(/`[^`\n]+`/g, '');
  return [...text.matchAll(/\]\(([^()\s]+)\)/g)].map(([, target = '']) => target);
}

function withoutCodeBlocks(markdown: string): string {
  return markdown.replaceAll(/^ *```.*?^ *```$/gms, '');
}
