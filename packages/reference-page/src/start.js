import { repairMarkup } from './accessibility.js';
import { prepareBlocks, readLanguage, watchKey, watchLanguage } from './blocks.js';
import { KEY_PAGE, listIntroduction, toMarkdown } from './introduction.js';
import { orderMenu, prepareForReaders } from './presentation.js';
import { addSamples } from './samples.js';
import { toSections, watchSearch } from './search.js';
import { readKey } from './session-key.js';

/** The first part of every address on Scalar's page. */
const SLUG = 'my-store';
const KEY_FIELD = 'The field under "Authentication" puts your key into every example on this page.';
const MAX_WAIT_FOR_PAINT_MS = 1_000;
/**
 * A heading above this belongs to the section that is being read. A link leads to a heading below the header of narrow
 * windows, which is above this; the next heading after a tag's heading and line is not.
 */
const READING_TOP_PX = 72;

watchKey();
watchLanguage();
prepareBlocks();
watchPage();
showReference();

async function showReference() {
  await untilPainted();
  const [openapi, guides] = await Promise.all([
    ...['openapi.json', 'docs/guides.json'].map(readJson),
    loadBundle(),
  ]);
  const baseUrl = new URL('v1', document.baseURI).href;
  const introduction = listIntroduction(
    openapi.info.description,
    `${guides.start}\n\n${KEY_FIELD}`,
    toOperator(openapi.info.contact),
    guides.sections.length > 0,
  );
  const pages = openapi.paths['/key'] === undefined ? [] : [KEY_PAGE];
  const sections = [...introduction, ...pages, ...guides.sections, ...toSections(openapi)];
  watchSearch(sections, guides.synonyms);
  const description = [...introduction.map(toMarkdown), guides.description].join('\n\n');
  // The section "Help" has the contact, which Scalar shows as a name without its address.
  openapi.info = { ...openapi.info, description, contact: undefined };
  prepareForReaders(openapi);
  orderMenu(openapi, SLUG);
  addSamples(openapi, baseUrl, readLanguage(), guides.client);
  hideAddress();
  // https://scalar.com/products/api-references/configuration. Every feature that calls or links to another host is off.
  globalThis.Scalar.createApiReference('#reference', {
    content: openapi,
    title: openapi.info.title,
    slug: SLUG,
    authentication: {
      preferredSecurityScheme: 'bearerAuth',
      securitySchemes: { bearerAuth: { token: readKey() } },
    },
    // The document has samples of its own.
    hiddenClients: true,
    // Scalar would offer its own copy, which has the guides in it. The introduction links to the served document.
    documentDownloadType: 'none',
    defaultOpenAllTags: true,
    // Without this, Scalar sends test requests through a proxy on its own host.
    proxyUrl: '',
    telemetry: false,
    withDefaultFonts: false,
    hideClientButton: true,
    showDeveloperTools: 'never',
    agent: { disabled: true },
    mcp: { disabled: true },
    // The page calls the server it was loaded from, whatever its address, because the reader's key belongs to that server,
    // and the page's policy allows no other.
    servers: [{ url: baseUrl, description: 'This server' }],
  });
  swapText();
}

/** Without a CONTACT_URL, the document names the page itself. */
function toOperator({ url }) {
  return url.endsWith('/docs') ? 'whoever gave you the address of this page' : `[the operator](${url})`;
}

/** The bundle runs for a second or more, so the reader gets the text first. A page in the background is not painted. */
function untilPainted() {
  return new Promise((resolve) => {
    requestAnimationFrame(() => setTimeout(resolve));
    setTimeout(resolve, MAX_WAIT_FOR_PAINT_MS);
  });
}

function loadBundle() {
  return new Promise((resolve, reject) => {
    const script = document.createElement('script');
    script.src = document.querySelector('script[data-bundle]').dataset.bundle;
    script.addEventListener('load', resolve);
    script.addEventListener('error', reject);
    document.head.append(script);
  });
}

/** Until it has rendered everything, Scalar would return to the section in the address, wherever the reader is. */
function hideAddress() {
  if (document.querySelector('.text :target') === null) return;
  history.replaceState(null, '', location.pathname + location.search);
}

/** The text stays until Scalar has rendered the section that is being read, which then has the same place. */
function swapText() {
  const text = document.querySelector('.text');
  const headings = [...text.querySelectorAll('main :is(h1, h2, h3)[id*="/"]')];
  const isPassed = (heading) => heading.getBoundingClientRect().top < READING_TOP_PX;
  const last = Math.max(headings.findLastIndex(isPassed), 0);
  // Scalar renders tags before operations, whose place moves until then. So the next section has to be there, too.
  const [section, next = section] = headings
    .slice(last, last + 2)
    .map(({ id }) => document.getElementById(`${SLUG}/${id}`));
  if ([section, next].some((each) => each === null || each.getClientRects().length === 0)) {
    requestAnimationFrame(swapText);
    return;
  }
  // The section's examples become tabs now, because the sections below would move later.
  prepareBlocks();
  const { top } = headings[last].getBoundingClientRect();
  const isMoved = scrollY > 0;
  text.remove();
  if (!isMoved) return;
  history.replaceState(null, '', `#${headings[last].id}`);
  const target = section.querySelector('h1, h2, h3') ?? section;
  scrollBy(0, target.getBoundingClientRect().top - top);
}

/** Scalar renders sections as they come into view, so every change of the page is watched. */
function watchPage() {
  let isScheduled = false;
  const schedule = () => {
    if (isScheduled) return;
    isScheduled = true;
    requestAnimationFrame(() => {
      isScheduled = false;
      prepareBlocks();
      repairMarkup();
    });
  };
  new MutationObserver(schedule).observe(document.body, {
    subtree: true,
    childList: true,
    attributeFilter: ['aria-selected', 'role'],
  });
  addEventListener('resize', schedule);
  document.querySelector('.skip-link').addEventListener('click', (event) => {
    event.preventDefault();
    document.querySelector('main').focus();
  });
}

async function readJson(path) {
  const response = await fetch(new URL(path, document.baseURI));
  return response.json();
}
