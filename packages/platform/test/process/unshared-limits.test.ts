import { expect, test } from 'vitest';
import { describeUnsharedLimits } from '../../src/process/unshared-limits.js';
import { setUpServiceProcesses } from '../support/service-processes.js';
import { createTestDatabase } from '../support/test-service.js';

const { start } = setUpServiceProcesses();
const LINE = /one of several processes[^\n]*REDIS_URL/;

test('one of several processes without Redis says at its start that each admits the whole limit', async () => {
  const service = start({
    ...{ DATABASE_URL: await createTestDatabase(), APP_ENV: 'staging', PORT: '0', LOG_LEVEL: 'warn' },
    NODE_APP_INSTANCE: '1',
  });
  const [line = ''] = await service.until(/^.*one of several processes.*$/m);
  expect(JSON.parse(line)).toMatchObject({ level: 40, msg: expect.stringMatching(LINE) });
});

test.each([
  ['a worker of node:cluster', [], {}, true, true],
  ['the second instance of PM2', [], { NODE_APP_INSTANCE: '1', pm_id: '3' }, false, true],
  ['the first or only instance of PM2', [], { NODE_APP_INSTANCE: '0', pm_id: '3' }, false, false],
  ['a process by itself', [], {}, false, false],
  ['a worker with Redis', ['redis://localhost'], { NODE_APP_INSTANCE: '1' }, true, false],
])('of limits that are not shared, %s is told as it should be', (_, urls, environment, isWorker, isTold) => {
  const line = describeUnsharedLimits(urls, environment, isWorker);
  if (isTold) expect(line).toMatch(LINE);
  else expect(line).toBeUndefined();
});
