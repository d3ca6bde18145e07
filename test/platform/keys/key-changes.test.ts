import pg from 'pg';
import { afterEach, expect, onTestFinished, test, vi } from 'vitest';
import { openConnections } from '../../../src/platform/database/connections.js';
import { createAuthenticator, MAX_TRUST_MS } from '../../../src/platform/keys/authenticator.js';
import {
  createKeyChangeStore,
  type KeyChangeStore,
  MAX_CHANGES,
} from '../../../src/platform/keys/change-store.js';
import { followKeyChanges, type KeyChanges } from '../../../src/platform/keys/changes.js';
import { generateKey } from '../../../src/platform/keys/format.js';
import { type ApiKey, createKeyStore } from '../../../src/platform/keys/store.js';
import { execute } from '../../support/execute.js';
import { list } from '../../support/operations-under-test.js';
import { asService } from '../../support/service-role.js';
import { createCaller, createTestDatabase, startService } from '../../support/test-service.js';
import { until } from '../../support/until.js';

const PLAN = { plan: 'free', perMinute: null, perDay: null, expiresAt: null } as const;

/** The reports of a process that follows the changes in a database, with undefined for all keys. */
async function follow(databaseUrl: string) {
  const connections = openConnections(asService(databaseUrl), () => {});
  const store = createKeyStore(connections, 'as_test_');
  const changeStore = createKeyChangeStore(connections);
  const changes = followKeyChanges(changeStore);
  const reports: (ReadonlySet<string> | undefined)[] = [];
  const alsoReported: typeof reports = [];
  changes.onChange((ids) => alsoReported.push(ids));
  changes.onChange((ids) => reports.push(ids));
  onTestFinished(async () => {
    await changes.close();
    await connections.close();
  });
  await untilAsked(changes, 1);
  // The first answer reports all: nothing was known before.
  expect(reports.splice(0)).toEqual([undefined]);
  expect(alsoReported).toEqual([undefined]);
  const issue = async () => (await store.create({ name: 'x', ...PLAN })).apiKey.id;
  return { changes, changeStore, reports, issue, untilReported: () => until(() => reports.shift()) };
}

/** Resolves when this many further questions have been answered. */
async function untilAsked(changes: KeyChanges, count: number): Promise<void> {
  const last = changes.answers + count;
  await until(() => (changes.answers >= last ? true : undefined));
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client(url);
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

test('a change and a removal by SQL are reported once each, and a new key is not', async () => {
  const url = await createTestDatabase();
  const { changes, reports, issue, untilReported } = await follow(url);
  const id = await issue();
  await untilAsked(changes, 2);
  expect(reports).toEqual([]);
  await execute(url, 'UPDATE api_keys SET revoked_at = now() WHERE id = $1', [id]);
  expect(await untilReported()).toEqual(new Set([id]));
  await execute(url, 'DELETE FROM api_keys WHERE id = $1', [id]);
  expect(await untilReported()).toEqual(new Set([id]));
  await untilAsked(changes, 2);
  expect(reports).toEqual([]);
});

test('TRUNCATE reports all keys', async () => {
  const url = await createTestDatabase();
  const { reports } = await follow(url);
  await execute(url, 'TRUNCATE api_keys CASCADE');
  await until(() => (reports.length > 0 ? true : undefined));
  expect(reports).toEqual([undefined]);
});

test('a change whose transaction began before others, and ends after them, is reported when it ends', async () => {
  const url = await createTestDatabase();
  const { changes, reports, issue, untilReported } = await follow(url);
  const [early, late] = [await issue(), await issue()];
  const slow = await connect(url);
  await slow.query('BEGIN');
  await slow.query('UPDATE api_keys SET name = $2 WHERE id = $1', [early, 'slow']);
  await execute(url, 'UPDATE api_keys SET name = $2 WHERE id = $1', [late, 'fast']);
  expect(await untilReported()).toEqual(new Set([late]));
  // While it is open, the change after it is answered again each time, and not reported again.
  await untilAsked(changes, 3);
  expect(reports).toEqual([]);
  await slow.query('COMMIT');
  expect(await untilReported()).toEqual(new Set([early]));
});

test('a change that is rolled back is not reported', async () => {
  const url = await createTestDatabase();
  const { changes, reports, issue } = await follow(url);
  const id = await issue();
  const client = await connect(url);
  await client.query('BEGIN');
  await client.query('UPDATE api_keys SET name = $2 WHERE id = $1', [id, 'other']);
  await client.query('ROLLBACK');
  await untilAsked(changes, 2);
  expect(reports).toEqual([]);
});

test('a role that may change keys, and note and record their changes, and nothing else, has its changes reported', async () => {
  const url = await createTestDatabase();
  const { issue, untilReported } = await follow(url);
  const id = await issue();
  const client = await connect(url);
  const role = `editor_${process.pid}_${Date.now()}`;
  const grants = `
    GRANT SELECT, UPDATE ON api_keys TO ${role};
    GRANT SELECT, INSERT, UPDATE ON api_key_changes TO ${role};
    GRANT INSERT ON api_key_history TO ${role}`;
  await client.query(`CREATE ROLE ${role}; ${grants}; SET ROLE ${role}`);
  await client.query('UPDATE api_keys SET revoked_at = now() WHERE id = $1', [id]);
  expect(await untilReported()).toEqual(new Set([id]));
  await client.query(`RESET ROLE; DROP OWNED BY ${role}; DROP ROLE ${role}`);
});

test('a change whose transaction was prepared days ago is not cleaned up before it is reported', async () => {
  const url = await createTestDatabase();
  const { changeStore, issue, untilReported } = await follow(url);
  const id = await issue();
  const client = await connect(url);
  await client.query('BEGIN');
  await client.query('UPDATE api_keys SET name = $2 WHERE id = $1', [id, 'other']);
  await client.query("UPDATE api_key_changes SET changed_at = now() - interval '2 days'");
  await changeStore.deleteOldChanges();
  await client.query('COMMIT');
  await changeStore.deleteOldChanges();
  expect(await untilReported()).toEqual(new Set([id]));
  // Whatever else runs on the server may keep it for a while.
  await until(async () => {
    await changeStore.deleteOldChanges();
    return (await client.query('SELECT FROM api_key_changes')).rowCount === 0 ? true : undefined;
  });
});

test('a database that takes the name of another one within a second reports all keys', async () => {
  const [url, other] = [await createTestDatabase(), await createTestDatabase()];
  const { reports } = await follow(url);
  const [name, otherName] = [url, other].map((each) => new URL(each).pathname.slice(1));
  const admin = await connect(new URL('/postgres', url).href);
  await admin.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS false`);
  await admin.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1', [name]);
  await until(() =>
    admin.query(`ALTER DATABASE ${name} RENAME TO ${name}_lost`).then(
      () => true,
      () => undefined,
    ),
  );
  await admin.query(`ALTER DATABASE ${otherName} RENAME TO ${name}`);
  await until(() => (reports.length > 0 ? true : undefined));
  expect(reports).toEqual([undefined]);
  await admin.query(`DROP DATABASE ${name}_lost`);
});

test('a table that was restored from a backup reports all keys, and its changes from another server are ignored', async () => {
  const url = await createTestDatabase();
  const { changes, reports, issue } = await follow(url);
  const id = await issue();
  await execute(url, 'INSERT INTO api_key_changes (api_key_id, transaction) VALUES ($1, $2)', [id, 2 ** 52]);
  await untilAsked(changes, 2);
  expect(reports).toEqual([]);
  const client = await connect(url);
  await client.query(`
    ALTER TABLE api_keys RENAME TO lost;
    CREATE TABLE api_keys (LIKE lost INCLUDING ALL);
    INSERT INTO api_keys SELECT * FROM lost`);
  await until(() => (reports.length > 0 ? true : undefined));
  expect(reports).toEqual([undefined]);
});

test('the time of a change is that of the change, however long its transaction has been open', async () => {
  const url = await createTestDatabase();
  const { issue } = await follow(url);
  const id = await issue();
  const client = await connect(url);
  await client.query('BEGIN');
  const isLater = "SELECT 1 WHERE clock_timestamp() > now() + interval '10 ms'";
  await until(async () => (await client.query(isLater)).rows[0]);
  await client.query('UPDATE api_keys SET name = $2 WHERE id = $1', [id, 'late']);
  const { rows } = await client.query('SELECT changed_at > now() AS is_later FROM api_key_changes');
  expect(rows).toEqual([{ is_later: true }]);
});

/** A store whose answers the test gives. */
function createAnswers() {
  const waiting: ((answer: Awaited<ReturnType<KeyChangeStore['readChanges']>>) => void)[] = [];
  const readChanges = () => new Promise<never>((resolve) => waiting.push(resolve as never));
  const changes = followKeyChanges({ readChanges });
  const reports: (ReadonlySet<string> | undefined)[] = [];
  changes.onChange((ids) => reports.push(ids));
  const answer = async (nextSince: number, ids: readonly string[] = [], source = 'a') => {
    const resolve = await until(() => waiting.shift());
    const count = changes.answers + 1;
    resolve({ source, nextSince, changes: ids.map((id) => ({ id, transaction: nextSince })) });
    await until(() => (changes.answers === count ? true : undefined));
  };
  return { changes, reports, answer };
}

test('any key may have changed after a failover to a server that is behind, or another, or after too many changes', async () => {
  const { reports, answer } = createAnswers();
  await answer(100);
  await answer(101, ['x']);
  expect(reports).toEqual([undefined, new Set(['x'])]);
  await answer(90);
  expect(reports).toHaveLength(3);
  await answer(91, [], 'b');
  await answer(
    92,
    Array.from({ length: MAX_CHANGES + 1 }, (_, n) => `key ${n}`),
    'b',
  );
  expect(reports.slice(2)).toEqual([undefined, undefined, undefined]);
});

test('any key may have changed when there was no answer for more than a second', async () => {
  const { reports, answer } = createAnswers();
  await answer(100);
  vi.spyOn(performance, 'now').mockReturnValue(performance.now() + 2_000);
  await answer(101);
  await answer(102);
  expect(reports).toEqual([undefined, undefined]);
});

afterEach(() => vi.restoreAllMocks());

test('a lookup that an answer overtook is trusted for a second only, however many answers follow', async () => {
  const { changes, answer } = createAnswers();
  await answer(100);
  const found: ((keys: ApiKey[]) => void)[] = [];
  const findByHashes = () => new Promise<ApiKey[]>((resolve) => found.push(resolve));
  const { authenticate } = createAuthenticator({
    store: { findByHashes },
    changes,
    prefix: 'as_test_',
    now: Date.now,
  });
  const header = `Bearer ${generateKey('as_test_')}`;
  const apiKey = { id: 'x', revokedAt: null, expiresAt: null } as ApiKey;
  const first = authenticate(header);
  const resolveFirst = await until(() => found.shift());
  await answer(101, ['x']);
  resolveFirst([apiKey]);
  expect(await first).toMatchObject({ apiKey });
  vi.spyOn(performance, 'now').mockReturnValue(performance.now() + 1_001);
  await answer(102);
  const second = authenticate(header);
  (await until(() => found.shift()))([{ ...apiKey, revokedAt: new Date() }]);
  expect(await second).toMatchObject({ rejected: { code: 'invalid_api_key' } });
});

/** An authenticator that hears of changes all the time, but of none, and a key that was found valid. */
async function useUnreportedKey() {
  const url = await createTestDatabase();
  const connections = openConnections(url, () => {});
  const store = createKeyStore(connections, 'as_test_');
  const changes = {
    get askedAt() {
      return performance.now();
    },
    answers: 0,
    onChange() {},
  };
  const authenticator = createAuthenticator({ store, changes, prefix: 'as_test_', now: Date.now });
  onTestFinished(async () => {
    await authenticator.close();
    await connections.close();
  });
  const { key } = await store.create({ name: 'x', ...PLAN });
  const authenticate = async () => {
    const found = await authenticator.authenticate(`Bearer ${key}`);
    return 'rejected' in found ? found.rejected.code : 'apiKey' in found && 'valid';
  };
  expect(await authenticate()).toBe('valid');
  await execute(
    url,
    `ALTER TABLE api_keys DISABLE TRIGGER USER; UPDATE api_keys SET revoked_at = now();
     ALTER TABLE api_keys ENABLE TRIGGER USER`,
  );
  const moveClock = (ms: number) => vi.spyOn(performance, 'now').mockReturnValue(performance.now() + ms);
  return { authenticate, moveClock };
}

test('a change that no trigger reports takes effect after a minute, even if the key was not used meanwhile', async () => {
  const { authenticate, moveClock } = await useUnreportedKey();
  moveClock(MAX_TRUST_MS);
  expect(await authenticate()).toBe('invalid_api_key');
});

test('a key in use is looked up again within a minute, and no request waits for that', async () => {
  const { authenticate, moveClock } = await useUnreportedKey();
  moveClock(MAX_TRUST_MS - 10_000);
  // Answered from memory: the key is due to be looked up.
  expect(await authenticate()).toBe('valid');
  await expect.poll(authenticate).toBe('invalid_api_key');
});

test('a key in use is not looked up again while nothing changes', async () => {
  const service = await startService();
  onTestFinished(() => service.close());
  const call = createCaller(service);
  const read = async (statement: string) => {
    const text = await (await fetch(`${service.url}/metrics`)).text();
    const [, count] =
      new RegExp(`animal_store_database_query_duration_seconds_count{statement="${statement}"} (\\d+)`).exec(
        text,
      ) ?? [];
    return Number(count ?? 0);
  };
  await call(list.path);
  // A busy machine may take a second to ask, after which a key is looked up again. One stretch without a lookup is enough:
  // five questions take two and a half seconds, and a key that was looked up every second would be in each of them.
  await until(async () => {
    const [lookups, asked] = [await read('keys-find-by-hashes'), await read('keys-changes')];
    await until(async () => {
      expect((await call(list.path)).status).toBe(200);
      return (await read('keys-changes')) >= asked + 5 ? true : undefined;
    });
    return (await read('keys-find-by-hashes')) === lookups ? true : undefined;
  }, 60_000);
});
