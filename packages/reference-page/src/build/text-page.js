import { KEY_NOTE, listIntroduction, toMarkdown } from '../introduction.js';
import { escapeHtml, rewriteLinks } from './guides.js';

/** An entry of the changelog, such as "## 1.0.0 - 2025-12-05". */
const ENTRY = /^## (\S+) - (\d{4}-\d{2}-\d{2})$/m;
/** What says more about the first call, by the guide that does */
const MORE = {
  '02-first-call.md':
    '[A first call](02-first-call.md) has the response, and the same call in other languages.',
  '01-keys.md':
    '[Getting and keeping a key](01-keys.md) says what a key may do, and what to do when it leaks.',
};
const OPERATOR =
  'the operator (`info.contact` of the document), or else whoever gave you the address of this page';

/** How to begin, in Markdown, for the page or for a text beside the guides. OPERATOR stands for the person to ask. */
export function prepareStart(store, guides, toAddress = (target) => `docs/${target}`) {
  const more = Object.entries(MORE).filter(([file]) => guides.some(({ name }) => name === file));
  const report = store.hasKeyPage
    ? ' [Your\n   key](key) shows what is left of its limits, and what it has called.'
    : '';
  const start = `1. **Get a key** from OPERATOR. If you run the service yourself, its first start in development prints one.${report}
2. **Make a call** with your key in place of \`${store.keyPrefix}test_…\`:

\`\`\`bash
curl -H 'Authorization: Bearer ${store.keyPrefix}test_…' 'https://${store.host}/v1${store.mainPath}?limit=2'
\`\`\`

${more.map(([, text]) => text).join('\n')}`;
  return rewriteLinks(start, (target) => toAddress(target, 'The page')).markdown;
}

/**
 * The page before Scalar runs, which is also the page without JavaScript, and the same as Markdown: the introduction, the
 * guides and the operations.
 *
 * @param {string} template page.html
 * @param {object} openapi the OpenAPI document
 * @param prepared what prepareGuides returns, with the guides and the names of the store
 */
export function renderPage(template, openapi, { sections, html, markdown, toAddress, store, guides }) {
  const operations = Object.entries(openapi.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ ...operation, path, method: method.toUpperCase() })),
  );
  const tags = openapi.tags.map((tag) => ({
    ...tag,
    operations: operations.filter((operation) => operation.tags.includes(tag.name)),
  }));
  const { title, description } = openapi.info;
  const introduce = (start) => listIntroduction(description, start, OPERATOR, guides.length > 0);
  const introduction = introduce(prepareStart(store, guides, toAddress));
  const reference = [
    { depth: 1, title: 'Operations', address: '#operations' },
    ...tags.flatMap(({ name, description, operations: own }) => [
      { depth: 2, title: name, address: `#tag/${name.toLowerCase()}`, text: description },
      ...own.map(describeOperation),
    ]),
  ];
  const toItem = ({ title, address }) => `<li><a href="${address}">${escapeHtml(title)}</a></li>`;
  const links = [
    ...[introduction[0], reference[0]].map(toItem),
    `<li><ul>${reference
      .filter(({ depth }) => depth === 3)
      .map(toItem)
      .join('')}</ul></li>`,
    ...sections.filter(({ title, place }) => title === place).map(toItem),
  ];
  const [, ...others] = introduce(prepareStart(store, guides));
  return {
    html: template
      .replace('<!-- contents -->', () => `<ul>${links.join('')}</ul>`)
      .replace('<!-- text -->', () =>
        [...introduction.map(toHtml), html, ...reference.map(toHtml)].join('\n'),
      ),
    markdown: [
      ...[{ ...introduction[0], title }, ...others].map(toMarkdown),
      markdown,
      ...reference.map(toMarkdown),
    ].join('\n\n'),
  };
}

function toHtml({ depth, title, address, text = '' }) {
  const heading = `<h${depth} id="${address.slice(1)}">${escapeHtml(title)}</h${depth}>`;
  return `${heading}\n${rewriteLinks(text, (target) => target).html}`;
}

/** The operation's address is the one that it has once Scalar runs. */
function describeOperation({ operationId, summary, description, path, method, tags: [tag], ...operation }) {
  const notes = [operation['x-stability'], ...(operation.deprecated ? ['deprecated'] : [])];
  const more = operationId === 'getKey' ? `\n\n${KEY_NOTE}` : '';
  return {
    depth: 3,
    title: summary,
    address: `#tag/${tag.toLowerCase()}/${method}${path}`,
    text: `\`${method} /v1${path}\` (${operationId}; ${notes.join(', ')})\n\n${description}${more}`,
  };
}

/**
 * The changelog of the interface as it is served at /changelog, as Markdown and as a page, and its feed (Atom, RFC 4287).
 * The page and the feed lead people to the page at /docs, and the Markdown leads programs to the single guides.
 *
 * @param {string} template changelog-page.html
 * @throws {Error} for an entry without a date, which a feed has to have
 */
export function renderChangelog(template, store, { name, text }, toAddress) {
  const { markdown } = rewriteLinks(text, (target) => `docs/${target}`);
  const toPageHtml = (part) => rewriteLinks(part, (target) => `docs${toAddress(target, name)}`).html;
  const [, ...entries] = text.split(/^(?=## )/m);
  if (entries.length === 0) throw new Error('changelog.md has no entry');
  const feed = entries.map((entry) => {
    const [heading, version, date] = ENTRY.exec(entry) ?? [];
    if (heading === undefined)
      throw new Error(`changelog.md: "${entry.split('\n', 1)}" has no version and date`);
    return { version, date: `${date}T00:00:00Z`, body: toPageHtml(entry.slice(heading.length)) };
  });
  return {
    'changelog-page.md': `${markdown}\n`,
    'changelog-page.html': template.replace('<!-- text -->', () => toPageHtml(text)),
    'changelog.atom': toFeed(store, feed),
  };
}

/**
 * The identifier of the feed begins those of its entries (RFC 4151), and is the same wherever the feed is served.
 * Addresses are relative to that of the feed, so that they also hold behind a proxy with a path of its own.
 */
function toFeed({ name, title }, entries) {
  const id = `tag:${name}.example,2025:interface`;
  const items = entries.map(
    ({ version, date, body }) => `  <entry>
    <id>${id}/${version}</id>
    <title>Interface ${version}</title>
    <updated>${date}</updated>
    <link rel="alternate" href="changelog"/>
    <content type="html">${escapeHtml(body)}</content>
  </entry>
`,
  );
  return `<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
  <id>${id}</id>
  <title>${escapeHtml(title)}: changes of the interface</title>
  <updated>${entries[0].date}</updated>
  <author><name>${escapeHtml(title)}</name></author>
  <link rel="self" href="changelog.atom"/>
  <link rel="alternate" href="changelog"/>
${items.join('')}</feed>
`;
}

/** The guides with their sections for language models, by the format of https://llmstxt.org. */
export function renderLlmsText({ title, description, client }, guides) {
  const links = guides.map(({ name, text }) => {
    const sections = [...text.matchAll(/^## (.+)$/gm)].map(([, heading]) => heading);
    return `- [${/^# (.+)$/m.exec(text)?.[1]}](docs/${name}): ${sections.join(', ')}`;
  });
  const addresses = [
    '- [OpenAPI document](openapi.json)',
    '- [Tools for assistants, by the Model Context Protocol](mcp): POST only, Streamable HTTP, with the API key as a bearer token',
    ...(client ? [`- [Typed client for TypeScript, to install with npm](${client.file})`] : []),
    ...(guides.length === 0 ? ['- [The operations as Markdown](docs/index.md)'] : []),
  ];
  return [
    `# ${title}`,
    `> ${description} REST is under /v1, tRPC under /trpc, and the Model Context Protocol at /mcp. Every call needs an API key as a bearer token.`,
    `## Interface\n\n${addresses.join('\n')}`,
    ...(links.length > 0 ? [`## Guides\n\n${links.join('\n')}`] : []),
  ]
    .join('\n\n')
    .concat('\n');
}
