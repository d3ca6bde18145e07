import { createCaller, execute, runNode } from '@animal-store/platform/testing';
import { expect, onTestFinished, test } from 'vitest';
import { definition, REUSE_EXAMPLES } from '#operations-under-test';
import { addSampleData } from '../../src/database/open-database.js';
import { listEveryCall, nameOf } from '../support/every-call.js';
import { issueRefusedKeys, runEveryOperation } from '../support/every-operation.js';
import { installPostgres } from '../support/old-postgres.js';
import { programOf } from '../support/process.js';
import { SystemPostgres } from '../support/system-postgres.js';
import { createTestDatabase, startService } from '../support/test-service.js';

const [tooOld, oldest] = [await installPostgres(13), await installPostgres(14)];

/** What comes of everything, and the status of each operation over each protocol. */
async function runOn(databaseUrl: string) {
  const service = await startService({ databaseUrl });
  const call = createCaller(service);
  await addSampleData(definition, service.database);
  const outcome = await runEveryOperation(service, await issueRefusedKeys(service));
  const { key, apiKey } = await service.keys.create({ name: 'endable', plan: 'pro' });
  const statuses: [name: string, status: number][] = [];
  for (const each of await listEveryCall(call, { key, hint: apiKey.hint })) {
    await service.database.pool.query(REUSE_EXAMPLES);
    statuses.push([nameOf(each), await each.send(call)]);
  }
  const readiness = (await call('/health/ready', { key: null })).body;
  await service.close();
  return { ...outcome, statuses, readiness };
}

test.skipIf(oldest === undefined)(
  'on the oldest PostgreSQL every operation answers as on the embedded one, over all protocols',
  { timeout: 60_000 },
  async () => {
    const server = await SystemPostgres.start({}, oldest);
    onTestFinished(() => server.close());
    const found = await runOn(server.urlOf());
    expect(found).toEqual(await runOn(await createTestDatabase()));
    expect(found.statuses.filter(([, status]) => status >= 500)).toEqual([]);
    expect(found.readiness).toMatchObject({ status: 'ok' });
  },
);

test.skipIf(tooOld === undefined)(
  'an older PostgreSQL is refused in one line, by migrate before it changes anything, by the start and by commands',
  { timeout: 60_000 },
  async () => {
    const server = await SystemPostgres.startEmpty({}, tooOld);
    onTestFinished(() => server.close());
    const environment = { DATABASE_URL: server.urlOf(), APP_ENV: 'staging', PORT: '0' };
    for (const command of [['cli', 'migrate'], ['main'], ['cli', 'keys', 'list']] as const) {
      const [script, ...args] = command;
      const program = runNode([programOf(script), ...args], environment);
      expect([command, await program.ended]).toEqual([command, 1]);
      const lines = program.output().trim().split('\n');
      expect(lines.filter((line) => !line.startsWith('{'))).toEqual([
        expect.stringMatching(
          /^The server of DATABASE_URL is PostgreSQL 13\.\S+, .*: upgrade it to 14 or later\.$/,
        ),
      ]);
    }
    const tables = await execute<{ count: number }>(
      server.urlOf(),
      "SELECT count(*)::int FROM pg_class WHERE relnamespace = 'public'::regnamespace",
    );
    expect(tables).toEqual([{ count: 0 }]);
  },
);
