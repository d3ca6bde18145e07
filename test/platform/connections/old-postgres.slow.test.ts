import { expect, onTestFinished, test } from 'vitest';
import { addSampleData } from '../../../src/platform/migrations/source.js';
import { issueRefusedKeys, runEveryOperation } from '../../support/every-operation.js';
import { installPostgres } from '../../support/old-postgres.js';
import { runNode } from '../../support/process.js';
import { SystemPostgres } from '../../support/system-postgres.js';
import { createTestDatabase, startService } from '../../support/test-service.js';

const [tooOld, oldest] = [await installPostgres(13), await installPostgres(14)];

async function runOn(databaseUrl: string) {
  const service = await startService({ databaseUrl });
  await addSampleData(service.database);
  const outcome = await runEveryOperation(service, await issueRefusedKeys(service));
  const { status } = await fetch(`${service.url}/health/ready`);
  await service.close();
  return { ...outcome, status };
}

test.skipIf(oldest === undefined)(
  'on the oldest PostgreSQL every operation answers as on the embedded one',
  { timeout: 60_000 },
  async () => {
    const server = await SystemPostgres.start({}, oldest);
    onTestFinished(() => server.close());
    expect(await runOn(server.urlOf())).toEqual(await runOn(await createTestDatabase()));
  },
);

test.skipIf(tooOld === undefined)(
  'an older PostgreSQL is refused in one line, by migrate before it changes anything, by the start and by commands',
  { timeout: 60_000 },
  async () => {
    const server = await SystemPostgres.startEmpty({}, tooOld);
    onTestFinished(() => server.close());
    const environment = { DATABASE_URL: server.urlOf(), APP_ENV: 'staging', PORT: '0' };
    for (const command of ['cli.js migrate', 'main.js', 'cli.js keys list']) {
      const program = runNode(`dist/${command}`.split(' '), environment);
      expect([command, await program.ended]).toEqual([command, 1]);
      const lines = program.output().trim().split('\n');
      expect(lines.filter((line) => !line.startsWith('{'))).toEqual([
        expect.stringMatching(
          /^The server of DATABASE_URL is PostgreSQL 13\.\S+, .*: upgrade it to 14 or later\.$/,
        ),
      ]);
    }
  },
);
