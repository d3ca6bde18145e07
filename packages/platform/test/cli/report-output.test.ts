import { existsSync } from 'node:fs';
import { Writable } from 'node:stream';
import { type Environment, runCommand } from '@animal-store/platform/testing';
import { beforeAll, expect, test } from 'vitest';
import { printReport } from '../../src/cli/report-output.js';
import { programOf, run, runKeys } from '../support/process.js';
import { createTestDatabase } from '../support/test-service.js';

const FULL_DEVICE = '/dev/full';

let environment: Environment;
beforeAll(async () => {
  environment = { DATABASE_URL: await createTestDatabase() };
  await runKeys(environment, 'create', '--name', 'x', '--plan', 'free');
});

test('a report is read no faster than it is written, so that it never waits in the memory', async () => {
  const events: string[] = [];
  const output = new Writable({
    write(chunk, _encoding, done) {
      setImmediate(() => {
        events.push(`written ${chunk}`);
        done();
      });
    },
  });
  async function* read() {
    for (const part of ['1', '2', '3']) {
      events.push(`read ${part}`);
      yield part;
    }
  }
  await printReport(read(), output);
  expect(events).toEqual(['read 1', 'written 1', 'read 2', 'written 2', 'read 3', 'written 3']);
});

test.each(['list', 'list --json', 'usage', 'usage --csv', 'history'])(
  'keys %s ends quietly with 0 if its reader has seen enough, as head has',
  async (report) => {
    const program = run('cli', ['keys', ...report.split(' ')], environment);
    program.child.stdout?.destroy();
    expect([await program.ended, program.output()]).toEqual([0, '']);
  },
);

test.runIf(existsSync(FULL_DEVICE))('a report that could not be written is an error', async () => {
  const command = `"$0" "${programOf('cli')}" keys list > ${FULL_DEVICE}`;
  const program = runCommand('sh', ['-c', command, process.execPath], environment);
  expect(await program.ended).toBe(1);
  expect(program.output()).toMatch(/^The output could not be written \(.*ENOSPC.*\).*\n$/);
});
