import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { createServer } from 'vite';
import { storefrontConfig } from './vite.config.js';

const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
/** The curl line of the service's banner. It contains the development key, and only the embedded default prints one. */
const BANNER = /Bearer (\S+)' '(http:\/\/[^/]+)\//;

/** Forces the embedded default on a free port, whatever the environment or a `.env` configures. */
const ENVIRONMENT = {
  LOG_LEVEL: 'warn',
  ...process.env,
  APP_ENV: 'development',
  HOST: '127.0.0.1',
  PORT: '0',
  METRICS_PORT: '',
  DATABASE_URL: '',
  DATABASE_URL_FILE: '',
  REDIS_URL: '',
  REDIS_URL_FILE: '',
  PUBLIC_URL: '',
  REUSE_PORT: '',
  WORKERS: '',
};

// Ctrl-C in a terminal signals the service too, which then finishes running requests: wait for it, do not kill it.
// The IPC channel closes when this process dies for any reason, which also stops the service.
const service = spawn(process.execPath, [MAIN], {
  env: ENVIRONMENT,
  stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
});
const exited = once(service, 'exit').then(([code]) => Number(code ?? 1));
const stop = () => void service.kill('SIGTERM');
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, stop);

const banner = await Promise.race([readBanner(service), exited]);
if (typeof banner === 'number') {
  process.stderr.write('The service did not start, so there is no storefront to show.\n');
  process.exit(banner || 1);
}
const page = await createServer({ ...storefrontConfig(banner.url), configFile: false, logLevel: 'warn' });
// Vite would exit on SIGTERM immediately; the service has to stop first.
process.removeAllListeners('SIGTERM').on('SIGTERM', stop);
await page.listen();
// Browsers do not send the fragment, so neither Vite nor a log ever sees the key.
process.stdout.write(
  `The storefront, with that key:\n\n  ${page.resolvedUrls?.local[0]}#key=${banner.key}\n\n`,
);
const code = await exited;
await page.close();
process.exit(code);

/** Forwards the output of the service, and finds its address and the development key in it. */
function readBanner({ stdout }: ChildProcess): Promise<{ url: string; key: string }> {
  return new Promise((resolve) => {
    let output = '';
    stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      process.stdout.write(chunk);
      output = (output + chunk).slice(-4096);
      const [, key, url] = BANNER.exec(output) ?? [];
      if (key !== undefined && url !== undefined) resolve({ url, key });
    });
  });
}
