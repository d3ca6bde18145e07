import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { IDENTITY } from '#store/identity.js';
import { OperatorError } from '../errors/operator-error.js';

/** Where prisma.config.ts is, so that Studio works from any folder */
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
/**
 * A module for the process of Prisma Studio. Its page reports its launch to checkpoint.prisma.io, which no option or
 * variable of Prisma turns off; a policy lets the browser refuse that, and whatever else would leave this machine.
 */
const POLICY = `
  import { subscribe } from 'node:diagnostics_channel';
  const policy = "default-src 'self' 'unsafe-inline' data: blob:";
  subscribe('http.server.request.start', (message) =>
    message.response.setHeader('Content-Security-Policy', policy));`;
/** Without it the page would open on the first table by name, which is Prisma's own list of migrations. */
const TABLE = `#table=${IDENTITY.mainTable}`;
/** Studio sorts columns by name, after those that the address pins; it forgets these when it opens another table. */
const KEYS = '#table=api_keys&pin=name,start,plan';
const ADDRESS = /http:\/\/localhost:\d+/;

/**
 * Runs Prisma Studio on a database until it exits, and opens its page. Neither contacts any other host.
 *
 * Ctrl-C reaches Studio directly, and SIGTERM is forwarded. Resolves with Studio's exit code.
 *
 * @throws OperatorError when Prisma's command line is not installed
 */
export async function runStudio(url: string, port?: number): Promise<number> {
  const policy = `data:text/javascript,${encodeURIComponent(POLICY)}`;
  const ports = port === undefined ? [] : ['--port', String(port)];
  // Prisma's own opening of a browser ends Studio where there is none.
  const args = ['--import', policy, findPrisma(), 'studio', '--browser', 'none', ...ports];
  const studio = spawn(process.execPath, args, {
    cwd: ROOT,
    env: { ...process.env, DATABASE_URL: url, CHECKPOINT_DISABLE: '1' },
    stdio: ['inherit', 'pipe', 'inherit'],
  });
  const exited = once(studio, 'exit');
  let isStopping = false;
  const stop = () => {
    isStopping = true;
    studio.kill();
  };
  process.on('SIGINT', stop).on('SIGTERM', stop);
  for await (const line of createInterface({ input: studio.stdout })) {
    const [address] = ADDRESS.exec(line) ?? [];
    if (address !== undefined) openPage(`${address}/${TABLE}`);
    const addresses = `$&/${TABLE}\nAPI keys, their names first: $&/${KEYS}`;
    process.stdout.write(`${line.replace(ADDRESS, addresses)}\n`);
  }
  const [code] = await exited;
  return isStopping ? 0 : (code ?? 1);
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

/** Does nothing if there is no browser: the address has been printed. */
function openPage(address: string): void {
  const program = process.platform === 'darwin' ? 'open' : 'xdg-open';
  const opener = spawn(program, [address], { stdio: 'ignore', detached: true });
  opener.on('error', () => {}).unref();
}
