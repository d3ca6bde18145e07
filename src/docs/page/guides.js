/*
 * The guides of docs/guides/ as sections of the reference page. Scalar makes a section of every heading in the
 * document's description. Its address follows from the heading's text, so links between the files are rewritten here.
 */
const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const HEADING = /^(#{1,6}) +(.+?)(?: +#+)? *$/;
const LINK = /\[([^\]]*)\]\(([^()\s]*)\)/g;
const IS_ABSOLUTE = /^[a-z]+:/;

/**
 * @typedef {{ readonly name: string, readonly text: string }} Guide its file name and its Markdown
 * @typedef {{ readonly name: string, readonly lines: Line[] }} Part
 * @typedef {{ readonly text: string, readonly isCode: boolean }} Line
 */

/**
 * The Markdown of a description with the guides after it, in the given order.
 *
 * @param {string} introduction Markdown whose links are relative to the page
 * @param {readonly Guide[]} guides
 * @returns {string}
 */
export function appendGuides(introduction, guides) {
  const parts = [{ name: '', text: introduction }, ...guides].map(({ name, text }) => ({
    name,
    lines: splitLines(text),
  }));
  const sections = findSections(parts);
  return parts
    .map((part) => part.lines.map((line) => showLine(line, part.name, sections)).join('\n'))
    .join('\n\n');
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
 * The addresses of all headings on the page, by file name and fragment as links in the repository name them:
 * `03-errors.md#retries`. A file name alone stands for its first heading.
 *
 * @param {readonly Part[]} parts
 */
function findSections(parts) {
  const toSlug = createCounter();
  const sections = new Map();
  for (const { name, lines } of parts) {
    const toFragment = createCounter();
    for (const { text } of lines.filter(({ isCode }) => !isCode)) {
      const heading = HEADING.exec(text)?.[2];
      if (heading === undefined) continue;
      const words = toPlainText(heading)
        .toLowerCase()
        .replace(/[^\p{L}\p{M}\p{N}\s_-]/gu, '');
      const section = `#description/${toSlug(words.replace(/[\s_-]+/g, '-').replace(/^-+|-+$/g, ''))}`;
      sections.set(`${name}#${toFragment(words.replaceAll(' ', '-'))}`, section);
      if (!sections.has(name)) sections.set(name, section);
    }
  }
  return sections;
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
function showLine({ text, isCode }, name, sections) {
  if (isCode) return text;
  const heading = HEADING.exec(text);
  if (heading !== null) return `${heading[1]} ${toPlainText(heading[2])}`;
  return text.replace(LINK, (link, label, target) => {
    if (target === '' || IS_ABSOLUTE.test(target)) return link;
    const section = sections.get(target.startsWith('#') ? name + target : target.replace(/^\.\//, ''));
    if (section === undefined && name === '') return link;
    // Other files of the repository are not on the page.
    return section === undefined ? label : `[${label}](${section})`;
  });
}

function toPlainText(markdown) {
  return markdown.replace(LINK, '$1').replace(/[`*]/g, '');
}
