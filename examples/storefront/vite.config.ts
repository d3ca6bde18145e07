import { fileURLToPath } from 'node:url';
import react from '@vitejs/plugin-react';
import {
  defaultClientConditions,
  defineConfig,
  type InlineConfig,
  type PluginOption,
  type ProxyOptions,
} from 'vite';

/**
 * The page calls its own origin, and Vite forwards those calls to the service. The service therefore needs no
 * CORS_ORIGINS, and the page does not need to know its address. Vite listens on this machine only.
 */
export function storefrontConfig(serviceUrl: string): InlineConfig {
  return {
    root: fileURLToPath(new URL('.', import.meta.url)),
    base: './',
    // Uses the client's sources, so that it need not be built first.
    resolve: { conditions: ['@animal-store/source', ...defaultClientConditions] },
    plugins: [react(), contentSecurityPolicy()],
    server: { host: '127.0.0.1', proxy: { '/trpc': forwardTo(serviceUrl) } },
    preview: { host: '127.0.0.1', proxy: { '/trpc': forwardTo(serviceUrl) } },
  };
}

/** Responds with 502 if the service cannot be reached; Vite by itself would respond with 500. */
function forwardTo(target: string): ProxyOptions {
  return {
    target,
    configure: (proxy) => {
      proxy.on('error', (_error, _request, response) => {
        if ('writeHead' in response && !response.headersSent) response.writeHead(502).end();
      });
    },
  };
}

/**
 * Restricts the built page to its own origin, so that no script of another host can run and read the key. Only when
 * building: in development, Vite needs inline scripts.
 */
function contentSecurityPolicy(): PluginOption {
  const content =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
    "base-uri 'none'; form-action 'none'";
  return {
    name: 'content-security-policy',
    apply: 'build',
    transformIndexHtml: () => [
      {
        tag: 'meta',
        attrs: { 'http-equiv': 'Content-Security-Policy', content },
        injectTo: 'head-prepend',
      },
    ],
  };
}

export default defineConfig(storefrontConfig(process.env.SERVICE_URL ?? 'http://127.0.0.1:3000'));
