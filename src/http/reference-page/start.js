showReference();

async function showReference() {
  const response = await fetch(new URL('openapi.json', document.baseURI));
  // https://scalar.com/products/api-references/configuration. Every feature that calls or links to another host is off.
  globalThis.Scalar.createApiReference('#reference', {
    content: omitFromSamples(await response.json()),
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
    servers: [{ url: new URL('v1', document.baseURI).href, description: 'This server' }],
  });
}

/**
 * Keeps optional parameters out of the code samples, as they are out of the test requests until the reader fills them in.
 * Scalar makes up a value for each that has a schema: an Idempotency-Key that is empty, and so invalid, and a cursor that
 * skips the first page. Described by its content, which means the same, a parameter has no value in samples.
 */
function omitFromSamples(openapi) {
  const operations = Object.values(openapi.paths).flatMap((item) => Object.values(item));
  const parameters = operations.flatMap((operation) => operation.parameters ?? []);
  for (const parameter of parameters.filter(({ required }) => !required)) {
    parameter.content = { 'text/plain': { schema: parameter.schema } };
    delete parameter.schema;
  }
  return openapi;
}
