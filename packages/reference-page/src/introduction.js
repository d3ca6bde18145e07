/*
 * What the page has before the guides. The build writes it into the page as text, and start.js hands it to Scalar with
 * the contact of the operator.
 */
const FORMATS =
  'Code generators and other tools can use the document as [JSON](openapi.json) or as [YAML](openapi.yaml), and language ' +
  'models [TEXTS as Markdown](llms.txt).';
/** The titles of the sections, with their addresses */
const TITLES = {
  introduction: 'Introduction',
  'get-a-key-make-a-call': 'Get a key, make a call',
  'what-holds-for-all-operations': 'What holds for all operations',
  help: 'Help',
};

/** No heading of a guide gets the address of one of these. */
export const PAGE_TITLES = Object.values(TITLES);

/** The page about the reader's key, for the search. It is served beside the guides. */
export const KEY_PAGE = {
  title: 'Your key',
  place: 'A page of its own',
  address: 'docs/key',
  text: 'A dashboard: what is left of its limits, its usage on each of the last 30 days, and when it expires.',
};
/** Added to the description of getKey. */
export const KEY_NOTE = `[${KEY_PAGE.title}](${KEY_PAGE.address}) shows it as a page.`;

/**
 * The sections, whose texts are Markdown.
 *
 * @param {string} description the document's description, whose first paragraph says what the service is
 * @param {string} start how to begin, in Markdown, with the word OPERATOR in it
 * @param {string} operator whom to ask, in Markdown
 * @param {boolean} hasGuides whether the store has any
 */
export function listIntroduction(description, start, operator, hasGuides) {
  const formats = FORMATS.replace('TEXTS', hasGuides ? 'the guides' : 'this page');
  const [identity, ...rest] = description.split('\n\n');
  const texts = [
    identity,
    start.replace('OPERATOR', operator),
    [...rest, formats].join('\n\n'),
    `For a key, a larger plan, or an answer that is not ${hasGuides ? 'in the guides' : 'here'}, ask ${operator}. Quote the \`X-Request-Id\` of the ` +
      'response that you ask about.',
  ];
  return Object.entries(TITLES).map(([slug, title], index) => ({
    depth: index === 0 ? 1 : 2,
    title,
    place: TITLES.introduction,
    address: `#description/${slug}`,
    text: texts[index],
  }));
}

export function toMarkdown({ depth, title, text = '' }) {
  return `${'#'.repeat(depth)} ${title}\n\n${text}`.trim();
}
