/*
 * Makes the code blocks of the page ready to be pasted: they show this service's address and the key that the reader has
 * entered, each has a button that copies it, and the languages of an example are tabs.
 */
import { LANGUAGES } from './languages.js';
import { isKey, keepKey, readKey } from './session-key.js';
import { createItem } from './storage.js';

const BLOCKS = ':is(.text, .markdown, .request-card) pre > code';
/** The guides read the address and the key from the environment, each language in its own way. */
const PLACEHOLDER =
  /(?<open>\$\{process\.env\.|\$|process\.env\.|os\.environ\['|(?:System\.getenv|os\.Getenv)\(")MY_STORE_(?<name>URL|KEY)(?:\}| \?\? ''|'\]|"\))?|(?<url>https:\/\/my-store\.example\.org)|(?<=Bearer |KEY=|apiKey: ')ms_test_…/g;
const COPIED_MS = 2_000;

const chosenLanguage = createItem('localStorage', 'my-store-language');

/** For each code element its original content, and the first node and the key of what it shows now */
const shown = new WeakMap();
let panelCount = 0;

export function readLanguage() {
  return chosenLanguage.read() ?? 'TypeScript';
}

/** Keeps what is typed into Scalar's field for the key, on the page or in the client for test requests. */
export function watchKey() {
  addEventListener('input', ({ target }) => {
    if (target.placeholder !== 'Token') return;
    keepKey(target.value);
    prepareBlocks();
  });
}

/** The language chosen for the samples of an operation applies to the guides, too. */
export function watchLanguage() {
  addEventListener('click', ({ target }) => {
    const option = target.closest('[role="option"]')?.textContent.trim();
    if (LANGUAGES.includes(option)) chooseLanguage(option);
  });
}

/** Leaves finished blocks alone, so it may run after every change of the page. */
export function prepareBlocks() {
  document.querySelectorAll('.by-language, .introduction-description .markdown').forEach(gatherTabs);
  for (const code of document.querySelectorAll(BLOCKS)) {
    fillIn(code);
    addCopyButton(code);
  }
}

function fillIn(code) {
  const key = readKey();
  const known = shown.get(code);
  const isUnchanged = known !== undefined && known.first === code.firstChild;
  if (isUnchanged && known.key === key) return;
  const original = isUnchanged ? known.original : code.innerHTML;
  code.innerHTML = original;
  // From the last match to the first, so that the places of the others stay the same.
  for (const match of [...code.textContent.matchAll(PLACEHOLDER)].reverse()) {
    // Any other typed text could end a string of the code.
    const text = toValue(match, isKey(key) ? key : undefined);
    if (text !== undefined) replaceText(code, match.index, match[0].length, text);
  }
  shown.set(code, { original, key, first: code.firstChild });
}

function toValue({ groups: { open, name, url } }, key) {
  const value = name === 'URL' || url !== undefined ? new URL('.', document.baseURI).href.slice(0, -1) : key;
  if (value === undefined || open === undefined || open.startsWith('$')) return value;
  const quote = open.endsWith('"') ? '"' : "'";
  return quote + value + quote;
}

/** Replaces text that highlighting may have spread over several elements. */
function replaceText(root, start, length, text) {
  const range = document.createRange();
  const nodes = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let end = 0; end < start + length; ) {
    const node = nodes.nextNode();
    const from = end;
    end += node.length;
    if (from <= start && start < end) range.setStart(node, start - from);
    if (start + length <= end) range.setEnd(node, start + length - from);
  }
  range.deleteContents();
  range.insertNode(document.createTextNode(text));
}

function addCopyButton(code) {
  if (code.nextElementSibling?.className === 'copy-block') return;
  const button = createButton('Copy', async () => {
    await copy(code);
    button.textContent = 'Copied';
    setTimeout(() => (button.textContent = 'Copy'), COPIED_MS);
  });
  button.className = 'copy-block';
  button.ariaLive = 'polite';
  code.after(button);
}

/** Browsers offer a clipboard only to pages that came over TLS or from this machine. */
async function copy(code) {
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(code.textContent);
  getSelection().selectAllChildren(code);
  document.execCommand('copy');
}

/** Makes tabs of the headings and paragraphs that are the name of a language, each with all that is below it. */
function gatherTabs(container) {
  const titles = [...container.children].filter(isLanguage);
  if (titles.length === 0) return;
  const tabs = document.createElement('div');
  tabs.className = 'languages';
  tabs.role = 'tablist';
  tabs.ariaLabel = 'Language';
  tabs.addEventListener('keydown', moveToTab);
  titles[0].before(tabs);
  for (const title of titles) {
    const panel = document.createElement('div');
    panelCount += 1;
    panel.id = `language-${panelCount}`;
    panel.role = 'tabpanel';
    panel.ariaLabel = title.textContent;
    while (title.nextSibling !== null && !titles.includes(title.nextSibling)) panel.append(title.nextSibling);
    title.replaceWith(panel);
    const tab = createButton(title.textContent, () => chooseLanguage(title.textContent));
    tab.role = 'tab';
    tab.setAttribute('aria-controls', panel.id);
    tabs.append(tab);
  }
  selectTab(tabs);
}

function isLanguage({ tagName, firstElementChild, textContent }) {
  const isTitle = tagName === 'H4' || (tagName === 'P' && firstElementChild?.tagName === 'STRONG');
  return isTitle && LANGUAGES.includes(textContent);
}

function chooseLanguage(language) {
  chosenLanguage.keep(language);
  document.querySelectorAll('.languages').forEach(selectTab);
}

/** If there is no example in the reader's language, the first example is shown. */
function selectTab(tabs) {
  const all = [...tabs.children];
  const selected = all.find(({ textContent }) => textContent === readLanguage()) ?? all[0];
  for (const tab of all) {
    tab.ariaSelected = tab === selected;
    tab.tabIndex = tab === selected ? 0 : -1;
    document.getElementById(tab.getAttribute('aria-controls')).hidden = tab !== selected;
  }
}

/** The arrow keys move between tabs (ARIA Authoring Practices, tabs with automatic activation). */
function moveToTab({ key, target }) {
  const { nextElementSibling: next, previousElementSibling: previous } = target;
  const tab = key === 'ArrowRight' ? next : key === 'ArrowLeft' ? previous : null;
  tab?.click();
  tab?.focus();
}

function createButton(text, act) {
  const button = document.createElement('button');
  button.type = 'button';
  button.textContent = text;
  button.addEventListener('click', act);
  return button;
}
