import { escapeHtml, rewriteLinks } from './guides.js';

/** The identifier of the feed, and the beginning of its entries' (RFC 4151): the same wherever it is served. */
const FEED_ID = 'tag:animal-store.example,2025:interface';
/** An entry of the changelog, such as "## 1.0.0 - 2025-12-05". */
const ENTRY = /^## (\S+) - (\d{4}-\d{2}-\d{2})$/m;
const HELP =
  'For a key, a larger plan, or an answer that is not in the guides, ask the operator: the address that `info.contact` of ' +
  'the document has, or else whoever gave you the address of this page. Quote the `X-Request-Id` of the response that you ' +
  'ask about.';

/**
 * The page before Scalar runs, which is also the page without JavaScript, and the same as Markdown: the introduction, the
 * guides and the operations.
 *
 * @param {string} template page.html
 * @param {object} openapi the OpenAPI document
 * @param texts what prepareGuides returns
 */
export function renderPage(template, openapi, { sections, html, markdown }) {
  const operations = Object.entries(openapi.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ ...operation, path, method: method.toUpperCase() })),
  );
  const tags = openapi.tags.map((tag) => ({
    ...tag,
    operations: operations.filter((operation) => operation.tags.includes(tag.name)),
  }));
  const introduction = [
    openapi.info.description,
    'The document is served as [JSON](openapi.json) and as [YAML](openapi.yaml), and every guide as [Markdown](llms.txt).',
  ].join('\n\n');
  const reference = tags.flatMap(({ name, description, operations: own }) => [
    { depth: 2, title: name, id: `tag/${name.toLowerCase()}`, text: description },
    ...own.map(describeOperation),
  ]);
  const toHref = (target) => target;
  const text = [
    '<h1 id="description/introduction">Introduction</h1>',
    rewriteLinks(introduction, toHref).html,
    '<h2 id="description/help">Help</h2>',
    rewriteLinks(HELP, toHref).html,
    html,
    '<h1 id="operations">Operations</h1>',
    ...reference.flatMap(({ depth, title, id, text }) => [
      `<h${depth} id="${id}">${escapeHtml(title)}</h${depth}>`,
      rewriteLinks(text ?? '', toHref).html,
    ]),
  ];
  const titles = [
    { title: 'Introduction', address: '#description/introduction' },
    ...sections.filter(({ title, place }) => title === place),
    { title: 'Operations', address: '#operations' },
  ];
  const toItem = ({ title, address }) => `<li><a href="${address}">${escapeHtml(title)}</a></li>`;
  const own = reference.filter(({ depth }) => depth === 3);
  const links = [
    ...titles.map(toItem),
    `<li><ul>${own.map(({ title, id }) => toItem({ title, address: `#${id}` })).join('')}</ul></li>`,
  ];
  return {
    html: template
      .replace('<!-- contents -->', () => `<ul>${links.join('')}</ul>`)
      .replace('<!-- text -->', () => text.join('\n')),
    markdown: [
      `# ${openapi.info.title}\n\n${introduction}`,
      `## Help\n\n${HELP}`,
      markdown,
      '# Operations',
      ...reference.flatMap(({ depth, title, text }) => [`${'#'.repeat(depth)} ${title}`, text ?? []].flat()),
    ].join('\n\n'),
  };
}

/** It has the address that it has once Scalar runs. */
function describeOperation({ operationId, summary, description, path, method, tags: [tag], ...operation }) {
  const notes = [operation['x-stability'], ...(operation.deprecated ? ['deprecated'] : [])];
  return {
    depth: 3,
    title: summary,
    id: `tag/${tag.toLowerCase()}/${method}${path}`,
    text: `\`${method} /v1${path}\` (${operationId}; ${notes.join(', ')})\n\n${description}`,
  };
}

/**
 * The changelog of the interface as it is served at /changelog, as Markdown and as a page, and its feed (Atom, RFC 4287).
 * Whoever reads the page or the feed is led on to the page at /docs, and a program to the single guides.
 *
 * @throws {Error} for an entry without a date, which a feed has to have
 */
export function renderChangelog({ name, text }, toAddress) {
  const { markdown } = rewriteLinks(text, (target) => `docs/${target}`);
  const toPageHtml = (part) => rewriteLinks(part, (target) => `docs${toAddress(target, name)}`).html;
  const [, ...entries] = text.split(/^(?=## )/m);
  if (entries.length === 0) throw new Error('changelog.md has no entry');
  const feed = entries.map((entry) => {
    const [heading, version, date] = ENTRY.exec(entry) ?? [];
    if (heading === undefined)
      throw new Error(`changelog.md: "${entry.split('\n', 1)}" has no version and date`);
    return {
      version,
      date: `${date}T00:00:00Z`,
      body: toPageHtml(entry.slice(heading.length)),
    };
  });
  return {
    'changelog-page.md': `${markdown}\n`,
    'changelog-page.html': toPage(toPageHtml(text)),
    'changelog.atom': toFeed(feed),
  };
}

function toPage(html) {
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>Changelog of the interface</title>
    <link rel="icon" href="docs/icon.svg" />
    <link rel="stylesheet" href="docs/theme.css" />
    <link rel="stylesheet" href="docs/text.css" />
    <link rel="alternate" type="text/markdown" href="docs/changelog.md" />
    <link rel="alternate" type="application/atom+xml" href="changelog.atom" />
  </head>
  <body>
    <div class="text">
      <nav><ul><li><a href="docs">Reference and guides</a></li><li><a href="changelog.atom">Feed</a></li></ul></nav>
      <main>
${html}
      </main>
    </div>
  </body>
</html>
`;
}

/** Addresses are relative to that of the feed, so that they also hold behind a proxy with a path of its own. */
function toFeed(entries) {
  const items = entries.map(
    ({ version, date, body }) => `  <entry>
    <id>${FEED_ID}/${version}</id>
    <title>Interface ${version}</title>
    <updated>${date}</updated>
    <link rel="alternate" href="changelog"/>
    <content type="html">${escapeHtml(body)}</content>
  </entry>
`,
  );
  return `<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
  <id>${FEED_ID}</id>
  <title>Animal Store Service: changes of the interface</title>
  <updated>${entries[0].date}</updated>
  <author><name>Animal Store Service</name></author>
  <link rel="self" href="changelog.atom"/>
  <link rel="alternate" href="changelog"/>
${items.join('')}</feed>
`;
}
