import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { createServer } from 'vite';
import { storefrontConfig } from './vite.config.js';

const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
/** What the service greets with on the embedded default, the only place where it shows a key. */
const GREETING = /Bearer (\S+)' '(http:\/\/[^/]+)\//;

/** The embedded default on a free port, whatever the environment or a `.env` says of another deployment. */
const ENVIRONMENT = {
  LOG_LEVEL: 'warn',
  ...process.env,
  APP_ENV: 'development',
  HOST: '127.0.0.1',
  PORT: '0',
  DATABASE_URL: '',
  REDIS_URL: '',
  PUBLIC_URL: '',
  WORKERS: '1',
};

// A terminal's Ctrl-C reaches the service too, which finishes what is running: it is waited for, not killed.
// The channel is how it learns that this process is gone, however that came to be.
const service = spawn(process.execPath, [MAIN], {
  env: ENVIRONMENT,
  stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
});
const ended = once(service, 'exit').then(([code]) => Number(code ?? 1));
const stop = () => void service.kill('SIGTERM');
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, stop);

const greeting = await Promise.race([readGreeting(service), ended]);
if (typeof greeting === 'number') {
  process.stderr.write('The service did not start, so there is no storefront to show.\n');
  process.exit(greeting || 1);
}
const page = await createServer({ ...storefrontConfig(greeting.url), configFile: false, logLevel: 'warn' });
// Vite would end the process at a SIGTERM of its own accord; here the service ends first.
process.removeAllListeners('SIGTERM').on('SIGTERM', stop);
await page.listen();
// The key stands in the fragment, which browsers keep to themselves: neither Vite nor a log ever sees it.
process.stdout.write(
  `The storefront, with that key:\n\n  ${page.resolvedUrls?.local[0]}#key=${greeting.key}\n\n`,
);
const code = await ended;
await page.close();
process.exit(code);

/** Shows what the service writes, and finds its address and the development key in it. */
function readGreeting({ stdout }: ChildProcess): Promise<{ url: string; key: string }> {
  return new Promise((resolve) => {
    let written = '';
    stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      process.stdout.write(chunk);
      written = (written + chunk).slice(-4096);
      const [, key, url] = GREETING.exec(written) ?? [];
      if (key !== undefined && url !== undefined) resolve({ url, key });
    });
  });
}
