import { repairMarkup } from './accessibility.js';
import { prepareBlocks, readKey, readLanguage, watchKey, watchLanguage } from './blocks.js';
import { appendGuides } from './guides.js';
import { prepareForReaders } from './presentation.js';
import { addSamples } from './samples.js';
import { listOperations, watchSearch } from './search.js';

/** Before the sections of the guides, and beside them in the sidebar. Links are relative to the page. */
const toIntroduction = ({ description, contact }) => `# Introduction

${description}

Code generators and other tools can use the document as [JSON](openapi.json) or as [YAML](openapi.yaml), and language
models [the guides as Markdown](llms.txt).

## Help

${toHelp(contact.url)} Quote the \`X-Request-Id\` of the response that you ask about.`;

/** Without a CONTACT_URL, the document names the page itself. */
function toHelp(url) {
  const operator = url.endsWith('/docs')
    ? 'whoever gave you the address of this page'
    : `[the operator](${url})`;
  return `For a key, a larger plan, or an answer that is not in the guides, ask ${operator}.`;
}

watchKey();
watchLanguage();
watchPage();
showReference();

async function showReference() {
  const [openapi, guides] = await Promise.all(['openapi.json', 'docs/guides.json'].map(readJson));
  const baseUrl = new URL('v1', document.baseURI).href;
  const { description, sections } = appendGuides(toIntroduction(openapi.info), guides);
  watchSearch([...sections, ...listOperations(openapi)]);
  // The section "Help" has the contact, which Scalar shows as a name without its address.
  openapi.info = { ...openapi.info, description, contact: undefined };
  prepareForReaders(openapi);
  addSamples(openapi, baseUrl, readLanguage());
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
