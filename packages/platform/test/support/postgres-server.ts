import { execFileSync } from 'node:child_process';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '@animal-store/limits/testing';
import {
  createTemporaryFolder,
  execute,
  type Program,
  runCommand,
  until,
} from '@animal-store/platform/testing';
import type { QueryResultRow } from 'pg';
import { definition } from '#operations-under-test';
import { type Cluster, openCluster } from '../../../embedded-postgres/src/database-cluster.js';
import { applyMigrations } from '../../src/migrations/migration-runner.js';
import type { Certificates } from './certificates.js';
import { createServiceRole } from './service-role.js';

const DATABASE = definition.identity.embedded.database;
const LISTENS = /ready to accept (?:read-only )?connections/;

type Settings = Readonly<Record<string, string>>;

/** A PostgreSQL of a test's own, with the schema, which it can kill, reconfigure, replicate and promote. */
export class PostgresServer {
  readonly port: number;
  /** The account that runs it; undefined: the test's own */
  readonly account: Cluster['account'];
  readonly #cluster: Cluster;
  #settings: Settings;
  #process: Program | undefined;

  private constructor(cluster: Cluster, port: number, settings: Settings) {
    this.#cluster = cluster;
    this.account = cluster.account;
    this.port = port;
    this.#settings = settings;
  }

  /** Creates a server and starts it. With a certificate it accepts only TLS. */
  static async start(settings: Settings = {}, certificate?: Certificates): Promise<PostgresServer> {
    const tls = certificate ? { ssl: 'on' } : {};
    const server = await PostgresServer.#open(await createTemporaryFolder(), { ...settings, ...tls });
    const type = certificate ? 'hostssl' : 'host';
    const access = ['all', 'replication'].map((database) => `${type} ${database} all all scram-sha-256\n`);
    await writeFile(join(server.#directory, 'pg_hba.conf'), access);
    if (certificate) server.#install(certificate);
    await server.run();
    await applyMigrations(server.url, definition.root);
    await createServiceRole(server.url);
    return server;
  }

  static async #open(dataDir: string, settings: Settings): Promise<PostgresServer> {
    const cluster = await openCluster({
      dataDir,
      database: DATABASE,
      systemDir: '/var/lib/embedded-postgres',
    });
    return new PostgresServer(cluster, await freePort(), settings);
  }

  /** Of its superuser */
  get url(): string {
    const mode = this.#settings.ssl === 'on' ? 'no-verify' : 'disable';
    return this.urlOf(DATABASE, this.#cluster.password, `sslmode=${mode}`);
  }

  get #directory(): string {
    return join(this.#cluster.directory, 'data');
  }

  /** How another server connects to replicate this one */
  get conninfo(): string {
    return `host=127.0.0.1 port=${this.port} dbname=${DATABASE} user=${DATABASE} password=${this.#cluster.password}`;
  }

  urlOf(user: string, password: string, parameters = '', host = '127.0.0.1'): string {
    return `postgresql://${user}:${encodeURIComponent(password)}@${host}:${this.port}/${DATABASE}?${parameters}`;
  }

  /** Starts the process, and waits until it accepts connections. */
  async run(settings = this.#settings): Promise<void> {
    this.#settings = settings;
    const all = { port: String(this.port), unix_socket_directories: '', ...settings };
    const flags = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    const { binaries, account, directory } = this.#cluster;
    const environment = { LC_ALL: 'C', TZ: 'UTC' };
    this.#process = runCommand(binaries.postgres, ['-D', 'data', ...flags], environment, {
      cwd: directory,
      account,
    });
    await this.#process.until(LISTENS);
  }

  /** Presents another certificate on new connections. Existing ones go on. */
  async useCertificate(certificate: Certificates): Promise<void> {
    this.#install(certificate);
    await this.reload();
  }

  #install({ cert, key }: Certificates): void {
    const { account } = this;
    // The names are PostgreSQL's defaults. It accepts a key that only its own account can read.
    const owner = account ? ['-o', String(account.uid), '-g', String(account.gid)] : [];
    for (const [from, to] of [
      [cert, 'server.crt'],
      [key, 'server.key'],
    ] as const) {
      execFileSync('install', ['-m', '600', ...owner, from, join(this.#directory, to)]);
    }
  }

  /** Reads the configuration files again. */
  async reload(): Promise<void> {
    const read = /reloading configuration files/g;
    const countReads = () => this.#process?.output().match(read)?.length ?? 0;
    const before = countReads();
    await this.query('SELECT pg_reload_conf()');
    await until(() => countReads() > before || undefined);
  }

  /** Restarts this server with a hot standby. A commit waits from now on until the standby has it, too. */
  async startStandby(): Promise<PostgresServer> {
    await this.end('SIGINT');
    const { directory } = this.#cluster;
    const dataDir = await createTemporaryFolder();
    const copy = join(dataDir, 'postgres');
    // The files of a stopped server are a base backup. `-a` keeps their owner, who runs the copy.
    execFileSync('cp', ['-a', directory, copy]);
    await writeFile(join(copy, 'data/standby.signal'), '');
    const standby = await PostgresServer.#open(dataDir, {
      primary_conninfo: `${this.conninfo} application_name=standby`,
    });
    await this.run({ ...this.#settings, synchronous_standby_names: 'standby' });
    await standby.run();
    const isReplicated = async () => {
      const rows = await this.query("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'");
      return rows.length > 0 || undefined;
    };
    await until(isReplicated);
    return standby;
  }

  /** Runs SQL on a connection of its own. */
  query<Row extends QueryResultRow>(sql: string): Promise<Row[]> {
    return execute<Row>(this.url, sql);
  }

  /** Ends the process: `SIGINT` rolls back what is running, `SIGKILL` is a crash. */
  async end(signal: 'SIGINT' | 'SIGKILL'): Promise<void> {
    this.#process?.child.kill(signal);
    await this.#process?.ended;
    this.#process = undefined;
  }

  async close(): Promise<void> {
    await this.end('SIGINT');
    await rm(this.#cluster.dataDir, { recursive: true, force: true });
  }
}
