import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const GUIDES_FOLDER = 'docs/guides';

/** A fenced code block of a document. Its info string is a language and options: `js first="denied"`. */
export interface CodeBlock {
  /** The document and the line of the fence, such as `docs/guides/05-pagination.md:12` */
  readonly place: string;
  readonly language: string;
  readonly code: string;
  /** Why the test does not run it */
  readonly notRun: string | undefined;
  /** Its first request is denied with a 429, or its first create is executed and the response lost */
  readonly first: 'denied' | 'lost' | undefined;
  /** The sample of its output: the block after it, if that is marked `output` */
  readonly output: CodeBlock | undefined;
}

interface Fence extends Omit<CodeBlock, 'output'> {
  readonly isOutput: boolean;
}

/** The file names of the guides in their order. */
export function listGuides(): string[] {
  return readdirSync(GUIDES_FOLDER)
    .filter((name) => name.endsWith('.md'))
    .sort();
}

/**
 * All code blocks of the guides, of the README and of the page that issues keys, without the samples of output; the script of
 * docs/database.md; and the commands of docs/operations.md that are marked as such. The others there need servers of their own.
 */
export function readCodeBlocks(): CodeBlock[] {
  const guides = listGuides().map((name) => join(GUIDES_FOLDER, name));
  const blocks = ['README.md', ...guides, 'examples/keys-page/README.md'].flatMap(readBlocks);
  const commands = readBlocks('docs/operations.md').filter(({ language }) => language === 'bash');
  const scripts = readBlocks('docs/database.md').filter(({ language }) => language === 'ts');
  return [...blocks, ...scripts, ...commands];
}

function readBlocks(path: string): CodeBlock[] {
  const fences = parseFences(path, readFileSync(path, 'utf8'));
  return fences
    .map(({ isOutput, ...fence }, index) => {
      const next = fences[index + 1];
      return { isOutput, ...fence, output: next?.isOutput ? { ...next, output: undefined } : undefined };
    })
    .filter(({ isOutput }) => !isOutput);
}

function parseFences(path: string, markdown: string): Fence[] {
  return [...markdown.matchAll(/^( *)```([^\n]*)\n(.*?)^ *```$/gms)].map(({ index, ...groups }) => {
    const { 1: indentation = '', 2: info = '', 3: code = '' } = groups;
    const [language = ''] = info.split(' ');
    const option = (name: string) => new RegExp(` ${name}="([^"]+)"`).exec(info)?.[1];
    return {
      place: `${path}:${markdown.slice(0, index).split('\n').length}`,
      language,
      code: code.replaceAll(new RegExp(`^${indentation}`, 'gm'), ''),
      notRun: option('not-run'),
      first: option('first') as CodeBlock['first'],
      isOutput: info.split(' ').includes('output'),
    };
  });
}

/** Why some output does not look like its sample; undefined when it does. */
export function findDifference({ language, code }: CodeBlock, output: string): string | undefined {
  // A sample may have line breaks where the service sends none.
  const toLines = (text: string) =>
    language === 'json' ? [JSON.stringify(JSON.parse(text))] : text.split('\n').map((line) => line.trimEnd());
  const lines = toLines(output);
  const missing = toLines(code).find((line) => !lines.some((other) => toPattern(line).test(other)));
  return missing === undefined ? undefined : `no line like: ${missing}`;
}

/** A line of a sample: any number stands for any other, and an ellipsis for any text. Header names have no case. */
function toPattern(line: string): RegExp {
  const literal = line.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
  return new RegExp(`^${literal.replace(/\d+/g, '\\d+').replaceAll('…', '.*')}$`, 'i');
}
