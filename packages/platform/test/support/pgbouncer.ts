import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort, hasProgram } from '@animal-store/limits/testing';
import { createTemporaryFolder, type Program, runCommand } from '@animal-store/platform/testing';
import type { PostgresServer } from './postgres-server.js';
import { findServers } from './service-role.js';

/** PGBOUNCER names another one than that on PATH. */
const BINARY = process.env.PGBOUNCER || 'pgbouncer';

export const hasPgbouncer = () => hasProgram(BINARY, '--version');

/** What PgBouncer connects to. */
type Target = Pick<PostgresServer, 'port' | 'account'>;

/** A PgBouncer, by default in transaction mode, with the settings of docs/configuration.md. */
export class Pgbouncer {
  readonly port: number;
  readonly #folder: string;
  readonly #account: PostgresServer['account'];
  #process: Program | undefined;

  private constructor(port: number, folder: string, account: PostgresServer['account']) {
    this.port = port;
    this.#folder = folder;
    this.#account = account;
  }

  static async start(
    server: Target,
    {
      user,
      password,
      poolSize,
      mode = 'transaction',
    }: { user: string; password: string; poolSize: number; mode?: 'transaction' | 'session' | 'statement' },
  ): Promise<Pgbouncer> {
    const folder = await createTemporaryFolder();
    const port = await freePort();
    const users = join(folder, 'users');
    const accounts = [{ name: user, password }, findServers().serviceRole];
    await writeFile(users, accounts.map(({ name, password }) => `"${name}" "${password}"\n`).join(''));
    await writeFile(
      join(folder, 'pgbouncer.ini'),
      `
[databases]
* = host=127.0.0.1 port=${server.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${users}
pool_mode = ${mode}
default_pool_size = ${poolSize}
max_client_conn = 1000
server_login_retry = 1
`,
    );
    const pgbouncer = new Pgbouncer(port, folder, server.account);
    await pgbouncer.run();
    return pgbouncer;
  }

  async run(): Promise<void> {
    // Like PostgreSQL, it refuses to run as root.
    this.#process = runCommand(BINARY, [join(this.#folder, 'pgbouncer.ini')], {}, { account: this.#account });
    await this.#process.until(/process up/);
  }

  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    this.#process?.child.kill(signal);
    await this.#process?.ended;
  }

  async close(): Promise<void> {
    await this.end('SIGTERM');
    await rm(this.#folder, { recursive: true, force: true });
  }
}
