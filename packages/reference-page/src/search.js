/*
 * A search of every word of the guides and the operations, in place of Scalar's, which knows only the headings of guides.
 */

const MAX_RESULTS = 12;
/** How much a word in the heading of a section or its guide counts. Words in the text add up to less than 1. */
const TITLE_WEIGHT = 2;
const PLACE_WEIGHT = 1;
/** After this many characters, a word of the text counts half as much. */
const TYPICAL_LENGTH = 800;
const CONTEXT_LENGTH = 60;
/** Scalar's button in the sidebar, and the one in the header of narrow windows */
const OPENERS = 'button:has(.sidebar-search-placeholder)';

/**
 * The sections that have all words of a query, or else those of a synonym, best first.
 *
 * @param {readonly { title: string, place: string, address: string, text: string }[]} sections
 * @param {string} query
 * @param {Record<string, string>} synonyms for a word or phrase that no section has, the words to look for instead
 */
export function searchSections(sections, query, synonyms) {
  return findSections(sections, toKnownWords(sections, query, synonyms));
}

/** The query itself if it finds something, or else the synonym of a word or phrase in it. */
function toKnownWords(sections, query, synonyms) {
  if (findSections(sections, query).length > 0) return query;
  const text = query.toLowerCase().replace(/\s+/g, ' ');
  const [, synonym] = Object.entries(synonyms).find(([phrase]) => text.includes(phrase)) ?? [];
  return synonym ?? query;
}

function findSections(sections, query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [];
  return sections
    .map((section) => ({ section, scores: words.map((word) => rate(section, word)) }))
    .filter(({ scores }) => scores.every((score) => score > 0))
    .map(({ section, scores }) => ({ section, score: scores.reduce((sum, score) => sum + score) }))
    .sort((a, b) => b.score - a.score)
    .slice(0, MAX_RESULTS)
    .map(({ section }) => section);
}

function rate({ title, place, text }, word) {
  const has = (other) => other.toLowerCase().includes(word);
  const count = text.toLowerCase().split(word).length - 1;
  const density = count / (count + 1 + text.length / TYPICAL_LENGTH);
  return density + (has(title) ? TITLE_WEIGHT : 0) + (has(place) ? PLACE_WEIGHT : 0);
}

/** Where a search that finds nothing leads: the beginning of each guide. */
export function listBeginnings(sections) {
  return sections.filter(({ title, place }) => title === place);
}

/** The operations of a document as sections. */
export function toSections({ paths, components }) {
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, { summary, tags, ...operation }]) => ({
      title: summary,
      place: `${operation.operationId}, ${method.toUpperCase()} ${path}`,
      address: `#tag/${tags[0].toLowerCase()}/${method.toUpperCase()}${path}`,
      text: [
        operation.description,
        ...(operation.parameters ?? []).map(({ name, description }) => `${name}: ${description}`),
        ...Object.keys(operation.responses),
        ...Object.values(operation.responses).flatMap(({ content }) =>
          listMembers(content?.['application/json']?.schema, components),
        ),
      ].join(' '),
    })),
  );
}

/** The members that a schema describes, at any depth, each with its description. Error responses are references. */
function listMembers(schema, components) {
  const { properties = {}, items } = resolve(schema, components);
  const own = Object.entries(properties).flatMap(([name, member]) => {
    const { description = '' } = { ...resolve(member, components), ...member };
    return [`${name}: ${description}`, ...listMembers(member, components)];
  });
  return items === undefined ? own : [...own, ...listMembers(items, components)];
}

function resolve(schema = {}, { schemas }) {
  return schema.$ref === undefined ? schema : schemas[schema.$ref.split('/').at(-1)];
}

/** Opens on Ctrl+K, Cmd+K and Scalar's own button, before Scalar notices. */
export function watchSearch(sections, synonyms) {
  const dialog = document.querySelector('#search');
  const [field, status, results] = dialog.querySelectorAll('input, [role=status], ol');
  const open = (event) => {
    event.preventDefault();
    event.stopImmediatePropagation();
    dialog.showModal();
    field.select();
  };
  const isHotKey = (event) => event.key === 'k' && (event.ctrlKey || event.metaKey);
  addEventListener('keydown', (event) => isHotKey(event) && open(event), { capture: true });
  addEventListener('click', (event) => event.target.closest(OPENERS) && open(event), { capture: true });

  field.addEventListener('input', () => {
    const query = toKnownWords(sections, field.value, synonyms);
    const found = findSections(sections, query);
    const isEmpty = field.value.trim() === '';
    const offered = found.length === 0 && !isEmpty ? listBeginnings(sections) : found;
    results.replaceChildren(...offered.map((section) => createResult(section, query)));
    const nothing = offered.length > 1 ? 'Nothing found. The guides are:' : 'Nothing found.';
    const counted = found.length === 0 ? nothing : `Sections found: ${found.length}`;
    status.textContent = isEmpty ? '' : counted;
  });
  dialog.addEventListener('keydown', (event) => {
    const links = [...results.querySelectorAll('a')];
    const index = links.indexOf(event.target);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) (links[index + step] ?? field).focus();
    else if (event.key !== 'Enter' || index !== -1) return;
    else links[0]?.click();
    event.preventDefault();
  });
  dialog.addEventListener('click', ({ target }) => {
    if (target === dialog || target.closest('a') !== null) dialog.close();
  });
}

function createResult({ title, place, address, text }, query) {
  const item = document.createElement('li');
  const link = document.createElement('a');
  link.href = address;
  const [heading, origin, context] = ['strong', 'span', 'p'].map((name) => document.createElement(name));
  heading.textContent = title;
  origin.textContent = place === title ? '' : place;
  const [word] = query.trim().toLowerCase().split(/\s+/);
  const start = text.toLowerCase().indexOf(word);
  if (start !== -1) {
    const mark = document.createElement('mark');
    mark.textContent = text.slice(start, start + word.length);
    const before = text.slice(Math.max(0, start - CONTEXT_LENGTH), start).replace(/^\S*\s/, '');
    context.append(before, mark, text.slice(start + word.length, start + word.length + CONTEXT_LENGTH));
  }
  link.append(heading, ' ', origin, context);
  item.append(link);
  return item;
}
