import { Marked, Renderer } from 'marked';
import { KEY_PAGE, PAGE_TITLES } from '../introduction.js';
import { LANGUAGES } from '../languages.js';

const IS_ABSOLUTE = /^[a-z]+:/;
/** A page that is not a file of the repository. Guides have its path as code, and the page makes a link of it. */
const KEY_PATH = `\`/${KEY_PAGE.address}\``;
const marked = new Marked();

/**
 * @typedef {{ readonly name: string, readonly text: string }} Guide its file name and its Markdown
 * @typedef {{ readonly title: string, readonly place: string, readonly address: string, text: string }} Section what
 *   is between two headings: its heading, that of its guide, its address on the page, and its text
 */

/**
 * The guides of docs/guides/ in the forms in which they are served:
 *
 * - description: Markdown for Scalar, which makes a section of every heading in it, whose address follows from its text
 * - sections: what the search of the page looks through
 * - html: what the page shows before Scalar runs, and without JavaScript, at the same addresses
 * - markdown: the guides as one text, whose links lead to the single ones
 *
 * and toAddress, which says where on the page a link of a guide leads.
 *
 * @param {readonly Guide[]} guides in their order
 * @throws {Error} for a link that leads nowhere
 */
export function prepareGuides(guides) {
  const parts = guides.map(({ name, text }) => ({
    name,
    tokens: marked.lexer(text.replaceAll(KEY_PATH, `[${KEY_PATH}](key)`)),
  }));
  const { sections, addresses } = divideIntoSections(parts);
  const toAddress = (target, name) => find(addresses, toPath(target, name), target, name);
  const toFile = (target, name) => {
    toAddress(target, name);
    return `docs/${toPath(target, name)}`;
  };
  return {
    description: parts.map((part) => toMarkdown(part, toAddress, toScalarHeading)).join('\n\n'),
    sections,
    html: parts.map((part) => toHtml(part, toAddress, addresses)).join('\n'),
    markdown: parts.map((part) => toMarkdown(part, toFile, ({ raw }) => raw)).join('\n\n'),
    toAddress,
  };
}

/** A text with relative links as HTML, and as Markdown. @param {(target: string) => string} toHref */
export function rewriteLinks(text, toHref) {
  const part = { name: '', tokens: marked.lexer(text) };
  const markdown = toMarkdown(part, toHref, ({ raw }) => raw);
  return { markdown, html: toHtml(part, toHref, new Map()) };
}

/**
 * The sections, and the addresses of their headings by file name and fragment as links in the repository name them:
 * `03-errors.md#retries`. A file name alone stands for its first heading.
 */
function divideIntoSections(parts) {
  const toSlug = createCounter();
  for (const title of PAGE_TITLES) toSlug(toWords(title));
  const addresses = new Map([['key', KEY_PAGE.address]]);
  const sections = [];
  for (const { name, tokens } of parts) {
    const toFragment = createCounter();
    let place;
    for (const token of tokens) {
      if (token.type !== 'heading' || isLanguage(token)) {
        if (place !== undefined) sections.at(-1).text += `${toText(token)}\n`;
        continue;
      }
      const title = toText(token);
      const words = toWords(title);
      const address = `#description/${toSlug(words.replace(/[\s_-]+/g, '-').replace(/^-+|-+$/g, ''))}`;
      place ??= title;
      sections.push({ title, place, address, text: '' });
      addresses.set(`${name}#${toFragment(words.replaceAll(' ', '-'))}`, address);
      if (!addresses.has(name)) addresses.set(name, address);
    }
  }
  return { sections, addresses };
}

/** The part of a heading's text that its address is made of, as GitHub and Scalar have it */
function toWords(title) {
  return title.toLowerCase().replace(/[^\p{L}\p{M}\p{N}\s_-]/gu, '');
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

function isLanguage({ type, depth, text }) {
  return type === 'heading' && depth === 3 && LANGUAGES.includes(text);
}

function toPath(target, name) {
  return target.startsWith('#') ? name + target : target.replace(/^\.\//, '');
}

function find(addresses, path, target, name) {
  const address = addresses.get(path);
  if (address === undefined) throw new Error(`${name} links to ${target}, which is no heading of a guide`);
  return address;
}

/** The source, unchanged except for links and headings. */
function toMarkdown({ name, tokens }, toHref, showHeading) {
  return tokens
    .map((token) => {
      if (token.type === 'code') return token.raw;
      if (token.type === 'heading') return showHeading(token);
      return listLinks(token).reduce(
        (text, { href }) => text.replaceAll(`](${href})`, `](${toHref(href, name)})`),
        token.raw,
      );
    })
    .join('')
    .trim();
}

/** Scalar finds the section of a heading only when its text is plain; the page's blocks.js makes tabs of languages. */
function toScalarHeading(token) {
  const line = isLanguage(token) ? `**${token.text}**` : `${'#'.repeat(token.depth)} ${toText(token)}`;
  return line + /\n*$/.exec(token.raw)[0];
}

function toHtml({ name, tokens }, toHref, addresses) {
  const toFragment = createCounter();
  const renderer = {
    heading({ tokens: inline, depth, ...token }) {
      const content = this.parser.parseInline(inline);
      if (isLanguage({ ...token, type: 'heading', depth })) return `<h4>${content}</h4>\n`;
      const words = toWords(toText({ tokens: inline }));
      const address = addresses.get(`${name}#${toFragment(words.replaceAll(' ', '-'))}`);
      const id = address === undefined ? '' : ` id="${address.slice(1)}"`;
      return `<h${depth}${id}>${content}</h${depth}>\n`;
    },
    html: ({ text }) => toFoldHtml(text) ?? escapeHtml(text),
    // Code that scrolls sideways has to be in the order of the Tab key.
    code: ({ text }) => `<pre><code tabindex="0">${escapeHtml(text)}\n</code></pre>\n`,
    table(token) {
      return `<div class="table" tabindex="0">${Renderer.prototype.table.call(this, token)}</div>\n`;
    },
    link({ href, tokens: inline }) {
      const target = IS_ABSOLUTE.test(href) ? href : toHref(href, name);
      return `<a href="${escapeHtml(target)}">${this.parser.parseInline(inline)}</a>`;
    },
  };
  const inHtml = new Marked({ renderer });
  return divideByLanguages(tokens)
    .map((part) => {
      const html = inHtml.parser(part);
      return isLanguage(part[0]) ? `<div class="by-language">\n${html}</div>\n` : html;
    })
    .join('');
}

/** An example in several languages is a part of its own, which the page's blocks.js turns into tabs. */
function divideByLanguages(tokens) {
  const parts = [];
  for (const token of tokens) {
    const isFirst = parts.length === 0;
    const changes = token.type === 'heading' && isLanguage(token) !== isLanguage(parts.at(-1)?.[0] ?? {});
    if (isFirst || changes) parts.push([]);
    parts.at(-1).push(token);
  }
  return parts;
}

function listLinks(token) {
  const links = [];
  marked.walkTokens([token], (each) => {
    if (each.type === 'link' && !IS_ABSOLUTE.test(each.href)) links.push(each);
  });
  return links;
}

/** The only HTML that a guide may have: the beginning and the end of a part that is folded */
const FOLD = /^<details>\n<summary>([^<]+)<\/summary>\s*$/;
const FOLD_END = /^<\/details>\s*$/;

/** The tag that begins or ends a folded part; undefined for any other HTML. */
function toFoldHtml(text) {
  const [, summary] = FOLD.exec(text) ?? [];
  if (summary !== undefined) return `<details>\n<summary>${escapeHtml(summary)}</summary>\n`;
  return FOLD_END.test(text) ? '</details>\n' : undefined;
}

/** The text for readers, without the marks of Markdown. */
function toText(token) {
  if (token.type === 'html') return FOLD.exec(token.text)?.[1] ?? token.text.replace(FOLD_END, '');
  if (token.type === 'table')
    return [token.header, ...token.rows].map((row) => row.map(toText).join(' ')).join('\n');
  if (token.type === 'list') return token.items.map(toText).join('\n');
  return token.tokens === undefined ? (token.text ?? '') : token.tokens.map(toText).join('');
}

export function escapeHtml(text) {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
