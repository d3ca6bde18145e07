import { execFileSync } from 'node:child_process';
import { chownSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { getuid } from 'node:process';
import { freePort, hasProgram } from '@animal-store/limits/testing';
import { createTemporaryFolder, execute, type Program, runCommand } from '@animal-store/platform/testing';
import { definition } from '#operations-under-test';
import { applyMigrations } from '../../src/migrations/migration-runner.js';
import type { PostgresServer } from './postgres-server.js';
import { createServiceRole } from './service-role.js';

/** PG_DUMP names another one than that on PATH. The server is of the same version: pg_dump refuses a later one. */
const PG_DUMP = process.env.PG_DUMP || 'pg_dump';
const DATABASE = definition.identity.embedded.database;

type Settings = Readonly<Record<string, string>>;

export const hasPostgresTools = () => hasProgram(PG_DUMP, '--version') && hasProgram('pg_config', '--bindir');

/** A server of the PostgreSQL that is installed on this machine, with its tools, or of another one. */
export class SystemPostgres {
  readonly port: number;
  readonly account: PostgresServer['account'];
  readonly #folder: string;
  readonly #process: Program;

  private constructor(folder: string, port: number, account: PostgresServer['account'], process: Program) {
    this.#folder = folder;
    this.port = port;
    this.account = account;
    this.#process = process;
  }

  /** Starts it with the schema. */
  static async start(settings: Settings = {}, bin?: string): Promise<SystemPostgres> {
    const server = await SystemPostgres.startEmpty(settings, bin);
    await applyMigrations(server.urlOf(), definition.root);
    await createServiceRole(server.urlOf());
    return server;
  }

  /** @param bin the folder of its programs */
  static async startEmpty(own: Settings = {}, bin = findInstalled()): Promise<SystemPostgres> {
    const folder = await createTemporaryFolder();
    const port = await freePort();
    const account = findAccount();
    if (account) chownSync(folder, account.uid, account.gid);
    const identity = account ? { uid: account.uid, gid: account.gid } : {};
    const data = join(folder, 'data');
    execFileSync(join(bin, 'initdb'), ['-D', data, '-U', DATABASE, '--auth=trust', '--no-sync'], {
      cwd: dirname(data),
      ...identity,
    });
    await writeFile(join(data, 'pg_hba.conf'), 'host all all all trust\n');
    const settings = [
      ...[`port=${port}`, 'unix_socket_directories=', 'fsync=off', 'max_connections=200'],
      ...Object.entries(own).map(([name, value]) => `${name}=${value}`),
    ];
    const program = runCommand(
      join(bin, 'postgres'),
      ['-D', data, ...settings.flatMap((setting) => ['-c', setting])],
      { LC_ALL: 'C' },
      { cwd: folder, account },
    );
    await program.until(/ready to accept connections/);
    const server = new SystemPostgres(folder, port, account, program);
    await execute(server.urlOf().replace(`/${DATABASE}?`, '/postgres?'), `CREATE DATABASE ${DATABASE}`);
    return server;
  }

  /** Of its superuser, directly or through a pooler. */
  urlOf(port = this.port): string {
    return `postgresql://${DATABASE}:x@127.0.0.1:${port}/${DATABASE}?sslmode=disable`;
  }

  async close(): Promise<void> {
    this.#process.child.kill('SIGINT');
    await this.#process.ended;
    await rm(this.#folder, { recursive: true, force: true });
  }
}

const findInstalled = () => execFileSync('pg_config', ['--bindir'], { encoding: 'utf8' }).trim();

/** PostgreSQL refuses to run as root. */
function findAccount(): PostgresServer['account'] {
  if (getuid?.() !== 0) return undefined;
  const id = (flag: string) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}
