import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { Definition } from '../definition/definition.js';
import { OperatorError } from '../operator-errors/operator-error.js';
import { describeCaller } from './caller.js';

/** What Prisma Studio's process runs before Studio */
const PRELOADED = new URL('studio-preload.js', import.meta.url).href;
/**
 * Studio sorts columns by name, after those that the address pins, which it forgets when it opens another table. No hash is
 * pinned, because Studio shows it as [object Object].
 */
const KEYS = '#table=api_keys&pin=name,owner,hint,plan';
/** Studio does not sort by time itself, and the ids of the history do not follow it. */
const HISTORY = '#table=api_key_history&sort=changed_at:desc';
const ADDRESS = /http:\/\/localhost:\d+/;

/** Where Studio listens */
const HOST = '127.0.0.1';

/**
 * Runs Prisma Studio on a database until it exits, and opens its page. Neither Studio nor the page contacts any other host.
 *
 * Ctrl-C reaches Studio directly, and SIGTERM is forwarded. Resolves with Studio's exit code.
 *
 * @throws OperatorError when Prisma's command line is not installed, or the port cannot be used
 */
export async function runStudio({ root, identity }: Definition, url: string, port?: number): Promise<number> {
  // Without this, the page would open on the first table by name, which is Prisma's own list of migrations.
  const mainPage = `#table=${identity.mainTable}`;
  // Studio lists all tables of a schema by name, and can neither hide nor order them, so the store's tables have addresses.
  const otherTables = Object.keys(identity.grants).filter((table) => table !== identity.mainTable);
  const ports = port === undefined ? [] : ['--port', String(port)];
  if (port !== undefined) await checkPort(port);
  // If Prisma opened the browser, Studio would end where there is none.
  const args = ['--import', PRELOADED, findPrisma(), 'studio', '--browser', 'none', ...ports];
  const studio = spawn(process.execPath, args, {
    // Where prisma.config.ts is, so that Studio works from any folder
    cwd: fileURLToPath(root),
    env: { ...process.env, DATABASE_URL: withApplicationName(identity.name, url), CHECKPOINT_DISABLE: '1' },
    // The channel tells Studio when this process is gone.
    stdio: ['inherit', 'pipe', 'inherit', 'ipc'],
  });
  const exited = once(studio, 'exit');
  let isStopping = false;
  const stop = () => {
    isStopping = true;
    studio.kill();
  };
  process.on('SIGINT', stop).on('SIGTERM', stop);
  for await (const line of createInterface({ input: studio.stdout as Readable })) {
    const [address] = ADDRESS.exec(line) ?? [];
    if (address !== undefined) openPage(`${address}/${mainPage}`);
    const others = otherTables.map((table) => `The table ${table}: $&/#table=${table}\n`);
    const ofKeys = `API keys, their names first: $&/${KEYS}\nThe history of keys, newest first: $&/${HISTORY}`;
    const addresses = `$&/${mainPage}\n${others.join('')}${ofKeys}`;
    process.stdout.write(`${line.replace(ADDRESS, addresses)}\n`);
  }
  const [code] = await exited;
  return isStopping ? 0 : (code ?? 1);
}

/** The history names Studio for changes made with it, unless the URL has a name of its own. */
function withApplicationName(service: string, url: string): string {
  if (/[?&]application_name=/.test(url)) return url;
  const name = encodeURIComponent(describeCaller(service, 'studio'));
  return `${url}${url.includes('?') ? '&' : '?'}application_name=${name}`;
}

/** Studio itself would end with a stack trace. @throws OperatorError */
async function checkPort(port: number): Promise<void> {
  const server = createServer().listen(port, HOST);
  try {
    await once(server, 'listening');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const problem = code === 'EADDRINUSE' ? 'is in use' : `cannot be used (${code})`;
    throw new OperatorError(`Port ${port} ${problem}: choose another with --port, or leave it out.`);
  }
  server.close();
  await once(server, 'close');
}

/** The path of Prisma's command line. Only npm puts it on the PATH. */
function findPrisma(): string {
  try {
    return createRequire(import.meta.url).resolve('prisma/build/index.js');
  } catch (cause) {
    throw new OperatorError(
      'Prisma Studio is not installed: it is one of the development dependencies, which "npm ci" installs.',
      { cause },
    );
  }
}

/** Does nothing if there is no browser, because the address has been printed. */
function openPage(address: string): void {
  const program = process.platform === 'darwin' ? 'open' : 'xdg-open';
  const opener = spawn(program, [address], { stdio: 'ignore', detached: true });
  opener.on('error', () => {}).unref();
}
