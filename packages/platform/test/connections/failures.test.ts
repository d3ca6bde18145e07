import { execute } from '@animal-store/platform/testing';
import { test } from 'vitest';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.js';
import { createTestDatabase, startService } from '../support/test-service.js';
import { expectFailure, type FailureName } from './failures.js';

/** The failures that one database of a server can have. Those of a whole server are in failures.slow.test.ts. */
interface Met {
  readonly proxy: TcpProxy;
  readonly name: string;
  /** On another database of the server */
  query(sql: string): Promise<unknown>;
}

const endSessions = (name: string) =>
  `SELECT pg_terminate_backend(pid, 2000) FROM pg_stat_activity WHERE datname = '${name}'`;

/** What changes a database, and what its sessions have to notice */
const alter =
  (begin: string, end: string) =>
  async ({ name, query }: Met) => {
    await query(`ALTER DATABASE ${name} ${begin}`);
    await query(endSessions(name));
    return async () => {
      await query(`ALTER DATABASE ${name} ${end}`);
      await query(endSessions(name));
    };
  };

const BEGIN = {
  async refused({ proxy }: Met) {
    await proxy.cut();
    return () => proxy.restore();
  },
  async stalled({ proxy }: Met) {
    proxy.stall();
    return () => proxy.restore();
  },
  closed: alter('ALLOW_CONNECTIONS false', 'ALLOW_CONNECTIONS true'),
  databaseReadOnly: alter('SET default_transaction_read_only = on', 'RESET default_transaction_read_only'),
} satisfies Partial<Record<FailureName, (met: Met) => Promise<() => Promise<unknown>>>>;

test.each(Object.keys(BEGIN) as (keyof typeof BEGIN)[])(
  'PostgreSQL %s: every operation is answered over every protocol as the document says, and served again',
  async (failure) => {
    const ownerUrl = await createTestDatabase();
    const { hostname, port, pathname } = new URL(ownerUrl);
    const proxy = await startTcpProxy({ host: hostname, port: Number(port) });
    const service = await startService({
      databaseUrl: Object.assign(new URL(ownerUrl), { port: String(proxy.port) }).href,
    });
    const { key, apiKey } = await service.keys.create({ name: 'endable', plan: 'pro' });
    const otherUrl = Object.assign(new URL(ownerUrl), { pathname: '/postgres' }).href;
    const met = { proxy, name: pathname.slice(1), query: (sql: string) => execute(otherUrl, sql) };
    await expectFailure(
      failure,
      {
        url: service.url,
        key: service.key,
        endable: { key, hint: apiKey.hint },
        query: (sql) => execute(ownerUrl, sql),
      },
      async () => ({ end: await BEGIN[failure](met) }),
    );
    await service.close();
    await proxy.close();
  },
);
