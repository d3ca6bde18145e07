import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { Agent, get, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseEnv } from 'node:util';
import { createServer, type ViteDevServer } from 'vite';
import { storefrontConfig } from './vite.config.js';

const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
/** The curl line of the service's banner. It contains the development key, and only the embedded default prints one. */
const BANNER = /Bearer (\S+)' '(http:\/\/[^/]+)\//;

/** How long a service that is running may take to say that it knows the key */
const PROBE_TIMEOUT_MS = 3_000;

interface Target {
  readonly url: string;
  readonly key: string;
}

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

const running = await findRunning();
if (running !== undefined) await showRunning(running);
else await showOwn();

/** The page of the service that runs on DATA_DIR, until a signal. */
async function showRunning(target: Target): Promise<void> {
  let page: ViteDevServer | undefined;
  const stop = () => void Promise.resolve(page?.close()).then(() => process.exit(0));
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, stop);
  page = await openPage(target, stop);
  print(`The storefront of the service at ${target.url}, with its development key`, page, target);
}

/** The page of a service of its own, which ends with it. */
async function showOwn(): Promise<void> {
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
  const page = await openPage(banner, stop);
  print('The storefront, with that key', page, banner);
  const code = await exited;
  await page.close();
  process.exit(code);
}

async function openPage({ url }: Target, stop: () => void): Promise<ViteDevServer> {
  const page = await createServer({ ...storefrontConfig(url), configFile: false, logLevel: 'warn' });
  // Vite would exit on SIGTERM immediately; the service has to stop first.
  process.removeAllListeners('SIGTERM').on('SIGTERM', stop);
  return page.listen();
}

/** Browsers do not send the fragment, so neither Vite nor a log ever sees the key. */
function print(title: string, page: ViteDevServer, { key }: Target): void {
  process.stdout.write(`${title}:\n\n  ${page.resolvedUrls?.local[0]}#key=${key}\n\n`);
}

/** The service that runs on DATA_DIR, if it still does: a process that was killed has left its address there. */
async function findRunning(): Promise<Target | undefined> {
  const settings = existsSync('.env') ? parseEnv(readFileSync('.env', 'utf8')) : {};
  const dataDir = process.env.DATA_DIR || settings.DATA_DIR || '.data';
  const read = async (file: string) => (await readFile(join(dataDir, file), 'utf8')).trim();
  try {
    const [url, key] = [await read('development-address'), await read('development-key')];
    return (await knows({ url, key })) ? { url, key } : undefined;
  } catch {
    return undefined;
  }
}

/** Whether the service accepts the key. An agent of its own follows no proxy of the environment, as fetch may. */
async function knows({ url, key }: Target): Promise<boolean> {
  const request = get(`${url}/v1/key`, {
    agent: new Agent(),
    headers: { authorization: `Bearer ${key}` },
    signal: AbortSignal.timeout(PROBE_TIMEOUT_MS),
  });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  response.resume();
  return response.statusCode === 200;
}

/** Forwards the output of the service, and finds its address and the development key in it. */
function readBanner({ stdout }: ChildProcess): Promise<Target> {
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
