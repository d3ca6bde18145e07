import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import * as zlib from 'node:zlib';

/** A file that is served as it is. */
export interface Asset {
  readonly bytes: Buffer;
  readonly type: string;
  /** Weak, because it stands for the compressed bytes too */
  readonly etag: string;
  /** The compressed bytes, made once */
  readonly gzip: () => Promise<Buffer>;
}

/** The reference page, and the scripts that it loads by their names under /docs/ */
export interface Page {
  readonly html: Asset;
  readonly scripts: ReadonlyMap<string, Asset>;
}

const compress = promisify(zlib.gzip);
const require = createRequire(import.meta.url);

/** https://scalar.com/products/api-references/configuration; whatever would call, or lead to, another host is off. */
const CONFIGURATION = {
  title: 'Animal Store Service',
  slug: 'animal-store',
  authentication: { preferredSecurityScheme: 'bearerAuth' },
  defaultHttpClient: { targetKey: 'shell', clientKey: 'curl' },
  documentDownloadType: 'json',
  defaultOpenAllTags: true,
  // Left out, requests would go through a proxy on another host.
  proxyUrl: '',
  telemetry: false,
  withDefaultFonts: false,
  hideClientButton: true,
  showDeveloperTools: 'never',
  agent: { disabled: true },
  mcp: { disabled: true },
};

/**
 * Refuses what the policy refuses, just before it: the bundle tries once whether code can be made of text, and each
 * reader's console would tell of a violation.
 */
const PREPARE = `const refuse = () => {
  throw new EvalError('refused by the policy of this page');
};
window.Function = new Proxy(Function, { apply: refuse, construct: refuse });
`;

/**
 * The page calls the server that it came from, under whatever address that is: a reader's key belongs to it, and the
 * page's policy allows no other.
 */
const START = `Scalar.createApiReference('#reference', {
  ...${JSON.stringify(CONFIGURATION)},
  url: new URL('openapi.json', document.baseURI).href,
  servers: [{ url: new URL('v1', document.baseURI).href, description: 'This server' }],
});
`;

/**
 * Reads Scalar's browser bundle and makes the page around it. Not the plugin's own page: its script is inline, which
 * the policy forbids.
 */
export async function loadPage(): Promise<Page> {
  const plugin = require.resolve('@scalar/fastify-api-reference');
  const scripts = [
    toScript('prepare', Buffer.from(PREPARE)),
    toScript('scalar', await readFile(join(dirname(plugin), 'js/standalone.js'))),
    toScript('start', Buffer.from(START)),
  ];
  return {
    html: toAsset(Buffer.from(toHtml(scripts.map(({ name }) => name))), 'text/html; charset=utf-8'),
    scripts: new Map(scripts.map(({ name, asset }) => [name, asset])),
  };
}

/** Scripts in the order in which they run. The empty icon keeps browsers from asking for one. */
function toHtml(scripts: readonly string[]): string {
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>Animal Store Service: API reference</title>
    <link rel="icon" href="data:," />
${scripts.map((name) => `    <script src="docs/${name}" defer></script>`).join('\n')}
  </head>
  <body>
    <div id="reference"></div>
    <noscript>This page needs JavaScript. The same is in <a href="openapi.json">openapi.json</a>.</noscript>
  </body>
</html>
`;
}

function toScript(name: string, bytes: Buffer): { name: string; asset: Asset } {
  const asset = toAsset(bytes, 'text/javascript; charset=utf-8');
  return { name: `${name}.${digest(bytes)}.js`, asset };
}

function toAsset(bytes: Buffer, type: string): Asset {
  let compressed: Promise<Buffer> | undefined;
  const gzip = (): Promise<Buffer> => {
    compressed ??= compress(bytes);
    return compressed;
  };
  return { bytes, type, etag: `W/"${digest(bytes)}"`, gzip };
}

function digest(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex').slice(0, 16);
}
