import type { Schema } from './schema.js';

export const MAX_LINE_LENGTH = 110;

const MAX_SAFE = Number.MAX_SAFE_INTEGER;
const BOUND_NAMES = new Map([
  [MAX_SAFE, '2^53 − 1'],
  [-MAX_SAFE, '−(2^53 − 1)'],
  [2 ** 31 - 1, '2^31 − 1'],
]);

/** A description with its bounds in words, unless it has them already */
export function describe({ description, type, ...bounds }: Schema): string | undefined {
  const { minimum, maximum, minLength = 0, maxLength, maxItems } = bounds;
  if (type === 'array')
    return joinSentences(description, maxItems === undefined ? undefined : `At most ${maxItems} items.`);
  if (type === 'integer' && minimum !== undefined && maximum !== undefined)
    return joinSentences(description, `An integer from ${nameBound(minimum)} to ${nameBound(maximum)}.`);
  if (type !== 'string' || maxLength === undefined) return description;
  const range = `${minLength} to ${maxLength}`;
  return description?.includes(range) ? description : joinSentences(description, `${range} characters.`);
}

function nameBound(bound: number): string {
  return BOUND_NAMES.get(bound) ?? bound.toLocaleString('en');
}

function joinSentences(...sentences: readonly (string | undefined)[]): string {
  return sentences
    .filter((text) => text !== undefined)
    .map((text, index, { length }) => (index < length - 1 ? `${text.replace(/\.$/, '')}.` : text))
    .join(' ');
}

/** @param tags pairs of a name and a text */
export function printComment(
  indent: string,
  paragraphs: readonly (string | undefined)[],
  tags: readonly (readonly [name: string, text?: string | undefined])[] = [],
): string {
  const width = MAX_LINE_LENGTH - indent.length - ' * '.length;
  const blocks = paragraphs.flatMap((text) => text?.split('\n\n') ?? []).filter(Boolean);
  const tagLines = tags.map(([name, text]) => [`@${name}`, text].filter(Boolean).join(' '));
  const texts = tagLines.length === 0 ? blocks : [...blocks, tagLines.join('\n')];
  const [only] = texts;
  if (only === undefined) return '';
  const close = (text: string) => text.replaceAll('*/', '*\\/');
  const single = `${indent}/** ${close(only)} */`;
  if (texts.length === 1 && single.length <= MAX_LINE_LENGTH && !only.includes('\n')) return `${single}\n`;
  const lines = texts.flatMap((text, index) => [
    // The items of a list follow each other.
    ...(index === 0 || (text.startsWith('- ') && index > 1) ? [] : ['']),
    ...text.split('\n').flatMap((line) => wrap(close(line), width)),
  ]);
  const body = lines.map((line) => `${indent} *${line && ' '}${line}\n`).join('');
  return `${indent}/**\n${body}${indent} */\n`;
}

function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = text.startsWith('- ') ? `  ${word}` : word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
