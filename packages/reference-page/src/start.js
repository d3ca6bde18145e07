import { repairMarkup } from './accessibility.js';
import { prepareBlocks, readKey, readLanguage, watchKey, watchLanguage } from './blocks.js';
import { prepareForReaders } from './presentation.js';
import { addSamples } from './samples.js';
import { toSections, watchSearch } from './search.js';

/** Before the sections of the guides, and beside them in the sidebar. Links are relative to the page. */
const toIntroduction = ({ description, contact }) => `# Introduction

${description}

Code generators and other tools can use the document as [JSON](openapi.json) or as [YAML](openapi.yaml), and language
models [the guides as Markdown](llms.txt).

## Help

${toHelp(contact.url)} Quote the \`X-Request-Id\` of the response that you ask about.`;

/** The sections of the introduction, for the search */
function listIntroduction(introduction) {
  const parts = introduction.split(/^#+ (.+)\n/m).slice(1);
  return ['introduction', 'help'].map((slug, index) => {
    const [title, text] = parts.slice(index * 2);
    return { title, place: 'Introduction', address: `#description/${slug}`, text };
  });
}

/** Without a CONTACT_URL, the document names the page itself. */
function toHelp(url) {
  const operator = url.endsWith('/docs')
    ? 'whoever gave you the address of this page'
    : `[the operator](${url})`;
  return `For a key, a larger plan, or an answer that is not in the guides, ask ${operator}.`;
}

const MAX_WAIT_FOR_PAINT_MS = 1_000;

watchKey();
watchLanguage();
watchPage();
showReference();

async function showReference() {
  await untilPainted();
  const [openapi, guides] = await Promise.all([
    ...['openapi.json', 'docs/guides.json'].map(readJson),
    loadBundle(),
  ]);
  const baseUrl = new URL('v1', document.baseURI).href;
  const introduction = toIntroduction(openapi.info);
  watchSearch([...listIntroduction(introduction), ...guides.sections, ...toSections(openapi)]);
  const description = `${introduction}\n\n${guides.description}`;
  // The section "Help" has the contact, which Scalar shows as a name without its address.
  openapi.info = { ...openapi.info, description, contact: undefined };
  prepareForReaders(openapi);
  addSamples(openapi, baseUrl, readLanguage(), guides.client);
  keepPlace();
  // https://scalar.com/products/api-references/configuration. Every feature that calls or links to another host is off.
  globalThis.Scalar.createApiReference('#reference', {
    content: openapi,
    title: 'Animal Store Service',
    slug: 'animal-store',
    authentication: {
      preferredSecurityScheme: 'bearerAuth',
      securitySchemes: { bearerAuth: { token: readKey() } },
    },
    // The document has samples of its own.
    hiddenClients: true,
    // Scalar would offer what it was given, which has the guides in it. The introduction links to what is served.
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
    // The page calls the server it was loaded from, whatever its address: the reader's key belongs to that server, and
    // the page's policy allows no other.
    servers: [{ url: baseUrl, description: 'This server' }],
  });
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

/** Whoever has begun to read goes on in the same section: Scalar shows the one in the address. */
function keepPlace() {
  if (location.hash !== '' || scrollY === 0) return;
  const passed = [...document.querySelectorAll('.text main [id]')].filter(
    (heading) => heading.getBoundingClientRect().top < innerHeight / 2,
  );
  if (passed.length > 0) history.replaceState(null, '', `#${passed.at(-1).id}`);
}

/** Scalar renders sections as they come into view, so every change of the page is looked at. */
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
