// https://scalar.com/products/api-references/configuration. Every feature that calls or links to another host is off.
globalThis.Scalar.createApiReference('#reference', {
  title: 'Animal Store Service',
  slug: 'animal-store',
  authentication: { preferredSecurityScheme: 'bearerAuth' },
  defaultHttpClient: { targetKey: 'shell', clientKey: 'curl' },
  documentDownloadType: 'json',
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
  url: new URL('openapi.json', document.baseURI).href,
  servers: [{ url: new URL('v1', document.baseURI).href, description: 'This server' }],
});
