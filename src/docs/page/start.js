import { watchMarkup } from './accessibility.js';
import { appendGuides } from './guides.js';
import { prepareForReaders } from './presentation.js';

/** Before the sections of the guides, and beside them in the sidebar. Links are relative to the page. */
const toIntroduction = (description) => `# Introduction

${description}

Code generators and other tools can use the document as [JSON](openapi.json) or as [YAML](openapi.yaml).`;

showReference();

async function showReference() {
  watchMarkup();
  const [openapi, guides] = await Promise.all(['openapi.json', 'docs/guides.json'].map(readJson));
  openapi.info.description = appendGuides(toIntroduction(openapi.info.description), guides);
  prepareForReaders(openapi);
  // https://scalar.com/products/api-references/configuration. Every feature that calls or links to another host is off.
  globalThis.Scalar.createApiReference('#reference', {
    content: openapi,
    title: 'Animal Store Service',
    slug: 'animal-store',
    authentication: { preferredSecurityScheme: 'bearerAuth' },
    defaultHttpClient: { targetKey: 'shell', clientKey: 'curl' },
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
    servers: [{ url: new URL('v1', document.baseURI).href, description: 'This server' }],
  });
}

async function readJson(path) {
  const response = await fetch(new URL(path, document.baseURI));
  return response.json();
}
