/*
 * The guides of docs/guides/ as sections of the reference page. Scalar makes a section of every heading in the
 * document's description. Its address follows from the heading's text, so links between the files are rewritten here.
 */
const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const HEADING = /^(#{1,6}) +(.+?)(?: +#+)? *$/;
const LINK = /\[([^\]]*)\]\(([^()\s]*)\)/g;
const IS_ABSOLUTE = /^[a-z]+:/;
/** A heading of the third level with one of these names is a tab, not a section. */
export const LANGUAGES = ['curl', 'JavaScript', 'TypeScript', 'Python', 'Java', 'Go'];
const LANGUAGE_HEADING = new RegExp(`^### (${LANGUAGES.join('|')})$`);

/**
 * @typedef {{ readonly name: string, readonly text: string }} Guide its file name and its Markdown
 * @typedef {{ readonly name: string, readonly lines: Line[] }} Part
 * @typedef {{ readonly text: string, readonly isCode: boolean }} Line
 * @typedef {{ readonly title: string, readonly place: string, readonly address: string, text: string }} Section what
 *   is between two headings: its heading, that of its guide, its address on the page, and its text
 */

/**
 * The Markdown of a description with the guides after it, in the given order, and its sections.
 *
 * @param {string} introduction Markdown whose links are relative to the page
 * @param {readonly Guide[]} guides
 * @returns {{ readonly description: string, readonly sections: readonly Section[] }}
 */
export function appendGuides(introduction, guides) {
  const parts = [{ name: '', text: introduction }, ...guides].map(({ name, text }) => ({
    name,
    lines: splitLines(text),
  }));
  const { sections, addresses } = findSections(parts);
  const description = parts
    .map((part) => part.lines.map((line) => showLine(line, part.name, addresses)).join('\n'))
    .join('\n\n');
  return { description, sections };
}

/** @returns {Line[]} */
function splitLines(text) {
  let fence;
  return text.split(/\r?\n/).map((line) => {
    const marker = FENCE.exec(line)?.[1];
    const isCode = fence !== undefined || marker !== undefined;
    if (fence === undefined) fence = marker;
    else if (marker?.startsWith(fence) && line.trim() === marker) fence = undefined;
    return { text: line, isCode };
  });
}

/**
 * The sections, and the addresses of their headings by file name and fragment as links in the repository name them:
 * `03-errors.md#retries`. A file name alone stands for its first heading.
 *
 * @param {readonly Part[]} parts
 */
function findSections(parts) {
  const toSlug = createCounter();
  const addresses = new Map();
  const sections = [];
  for (const { name, lines } of parts) {
    const toFragment = createCounter();
    let place;
    for (const { text, isCode } of lines) {
      const title = isCode || LANGUAGE_HEADING.test(text) ? undefined : HEADING.exec(text)?.[2];
      if (title === undefined) {
        if (place !== undefined && !FENCE.test(text))
          sections.at(-1).text += `${isCode ? text : toProse(text)}\n`;
        continue;
      }
      const words = toPlainText(title)
        .toLowerCase()
        .replace(/[^\p{L}\p{M}\p{N}\s_-]/gu, '');
      const address = `#description/${toSlug(words.replace(/[\s_-]+/g, '-').replace(/^-+|-+$/g, ''))}`;
      place ??= toPlainText(title);
      sections.push({ title: toPlainText(title), place, address, text: '' });
      addresses.set(`${name}#${toFragment(words.replaceAll(' ', '-'))}`, address);
      if (!addresses.has(name)) addresses.set(name, address);
    }
  }
  return { sections, addresses };
}

/** Numbers repeated texts as GitHub and Scalar do: retries, retries-1, retries-2. */
function createCounter() {
  const counts = new Map();
  return (text) => {
    const count = counts.get(text) ?? 0;
    counts.set(text, count + 1);
    return count === 0 ? text : `${text}-${count}`;
  };
}

/** Scalar finds the section of a heading only when its text is plain. */
function showLine({ text, isCode }, name, addresses) {
  if (isCode) return text;
  const language = LANGUAGE_HEADING.exec(text);
  // The page's blocks.js makes tabs of them.
  if (language !== null) return `**${language[1]}**`;
  const heading = HEADING.exec(text);
  if (heading !== null) return `${heading[1]} ${toPlainText(heading[2])}`;
  return text.replace(LINK, (link, label, target) => {
    if (target === '' || IS_ABSOLUTE.test(target)) return link;
    const address = addresses.get(target.startsWith('#') ? name + target : target.replace(/^\.\//, ''));
    if (address === undefined && name === '') return link;
    // Other files of the repository are not on the page.
    return address === undefined ? label : `[${label}](${address})`;
  });
}

function toPlainText(markdown) {
  return markdown.replace(LINK, '$1').replace(/[`*]/g, '');
}

/** A line as it is read, without the marks of lists and tables */
function toProse(line) {
  return toPlainText(line)
    .replace(/^ *(?:- |#+ )|[ |]*\|[ |-]*/g, ' ')
    .trim();
}
