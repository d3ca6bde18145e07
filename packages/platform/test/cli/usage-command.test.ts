import { expect, test } from 'vitest';
import { list } from '#operations-under-test';
import type { KeyTools } from '../../src/cli/key-command.js';
import { printUsage, printUsageOfKeys } from '../../src/cli/usage-command.js';
import type { UsageStore } from '../../src/usage/store.js';

const store = {
  read: async () => [{ day: '2026-01-01', operation: list.name, requests: 1, denied: 0 }],
} as unknown as UsageStore;

/** What `keys usage --csv` prints for a key of this name and owner, without its line of titles */
async function printCsv(name: string, owner: string | null): Promise<string> {
  const { text } = await printUsage(store, { by: 'requests', csv: true }, [], { id: 'id', name, owner });
  return text.split('\n').slice(1).join('\n');
}

test.each([
  ['=HYPERLINK("http://x","y")', `"'=HYPERLINK(""http://x"",""y"")"`],
  ['+1', "'+1"],
  ['-1', "'-1"],
  ['@SUM(1)', "'@SUM(1)"],
  ['\t=1', "'?=1"],
  ['\r=1', "'?=1"],
  ['\n=1', "'?=1"],
  ['＝1', "'＝1"],
  ['a=1', 'a=1'],
  ['a;b', 'a;b'],
  ['a;=1;+2;b', "a;'=1;'+2;b"],
  ['a;"=1;b', `"a;'""=1;b"`],
  ['a\u001b[31m\r\nb', 'a?[31m??b'],
  ['a\u202eb', 'a?b'],
  ['a, "b"', '"a, ""b"""'],
])('the name %j is a text in a spreadsheet and in a terminal', async (name, cell) => {
  const rest = `2026-01-01,${list.name},1,0,false`;
  expect(await printCsv(name, null)).toBe(`id,${cell},,${rest}`);
  expect(await printCsv('x', name)).toBe(`id,x,${cell},${rest}`);
});

test('the usage of all keys as CSV is read a day at a time, each when the one before is printed, so that it fits into the memory', async () => {
  const read: string[] = [];
  const days = {
    findDays: async () => ['2026-01-03', '2026-01-01'],
    async readKeysOnDay(day: string) {
      read.push(day);
      return [{ id: 'id', name: 'x', owner: null, day, operation: list.name, requests: 1, denied: 0 }];
    },
  } as unknown as UsageStore;
  const tools = { store: {} as KeyTools['store'], usage: days };
  const result = await printUsageOfKeys(tools, { by: 'requests', csv: true }, []);
  const printed: string[] = [];
  if ('parts' in result) for await (const part of result.parts) printed.push(`${read.length} ${part}`);
  expect(printed).toEqual([
    '0 id,name,owner,day,operation,requests,denied,deprecated\n',
    `1 id,x,,2026-01-03,${list.name},1,0,false\n`,
    `2 id,x,,2026-01-01,${list.name},1,0,false\n`,
  ]);
});
