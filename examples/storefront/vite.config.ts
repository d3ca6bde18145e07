import { fileURLToPath } from 'node:url';
import react from '@vitejs/plugin-react';
import { defineConfig, type InlineConfig, type PluginOption, type ProxyOptions } from 'vite';

/**
 * How the page is served. Calls go to the page's own origin and are passed on to the service from there, so that the
 * service needs no CORS_ORIGINS and the page no address of it; it listens for this machine only.
 */
export function storefrontConfig(serviceUrl: string): InlineConfig {
  return {
    root: fileURLToPath(new URL('.', import.meta.url)),
    base: './',
    plugins: [react(), policy()],
    server: { host: '127.0.0.1', proxy: { '/trpc': passTo(serviceUrl) } },
    preview: { host: '127.0.0.1', proxy: { '/trpc': passTo(serviceUrl) } },
  };
}

/** A service that cannot be reached is the gateway's to tell of: 502, where Vite would answer 500. */
function passTo(target: string): ProxyOptions {
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
 * Binds the built page to its own origin: no script of another host can run and read the key. Not while developing,
 * where Vite needs inline scripts.
 */
function policy(): PluginOption {
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
