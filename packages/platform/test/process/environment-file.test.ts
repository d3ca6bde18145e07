import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createTemporaryFolder } from '@animal-store/platform/testing';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { OperatorError } from '../../src/operator-errors/operator-error.js';
import { loadEnvironmentFile } from '../../src/process/environment-file.js';

let path: string;

beforeEach(async () => {
  path = join(await createTemporaryFolder(), '.env');
});
afterEach(() => rm(join(path, '..'), { recursive: true }));

/** What a file makes of an environment. */
async function load(content: string | Buffer, environment: Record<string, string> = {}) {
  await writeFile(path, content);
  const notices = loadEnvironmentFile(path, environment);
  return { environment, notices };
}

test('variables that are set take precedence, also if they are empty', async () => {
  const { environment } = await load('PORT=1\nHOST=a\nLOG_LEVEL=warn\n', { PORT: '2', HOST: '' });
  expect(environment).toEqual({ PORT: '2', HOST: '', LOG_LEVEL: 'warn' });
});

test.each([
  ['UTF-16, as some editors of Windows save it', Buffer.from('\uFEFFPORT=1\n', 'utf16le')],
  ['UTF-16 without a byte order mark', Buffer.from('PORT=1\n', 'utf16le')],
  ['Latin-1', Buffer.from('PORT=1\nDATA_DIR=tränke\n', 'latin1')],
])('a file in %s is refused with one line', async (_encoding, content) => {
  await expect(load(content)).rejects.toThrow(OperatorError);
  await expect(load(content)).rejects.toThrow(/^\S+\.env is not UTF-8 text: [^\n]*$/);
});

test('a directory is refused with one line that says what to do', async () => {
  await mkdir(path);
  const load = () => loadEnvironmentFile(path, {});
  expect(load).toThrow(OperatorError);
  expect(load).toThrow(/^\S+\.env cannot be read: make it [^\n]*, or remove it\.$/);
});

test('a file in UTF-8 is read with and without a byte order mark', async () => {
  for (const content of ['PORT=1\nDATA_DIR=tränke\n', '\uFEFFPORT=1\nDATA_DIR=tränke\n'])
    expect((await load(content)).environment).toEqual({ PORT: '1', DATA_DIR: 'tränke' });
});

test.each([
  'HOST=a#hunter2',
  'export HOST =#hunter2',
  'HOST=a b#c # hunter2',
  'PORT=1\r\n  HOST=ab#hunter2\r\n',
])('a # that would cut a value is refused with one line that names the variable: %j', async (content) => {
  await expect(load(content)).rejects.toThrow(/^\S+\.env has a # in the value of HOST, [^\n]* quotes[^\n]*$/);
  await expect(load(content)).rejects.not.toThrow(/hunter2/);
});

test.each([
  ['HOST="a#b"', { HOST: 'a#b' }],
  ["HOST='#'", { HOST: '#' }],
  ['HOST=`a#b`', { HOST: 'a#b' }],
  ['HOST=a # b#c', { HOST: 'a' }],
  ['HOST= # b', { HOST: '' }],
  ['# HOST=a#b', {}],
  ['HOST="\nPORT=c#d"', { HOST: '\nPORT=c#d' }],
])('a # in quotes, or behind a space, is none of these: %j', async (content, environment) => {
  expect((await load(content)).environment).toEqual(environment);
});

test('each name that no variable of the service has gives a line, and its value none', async () => {
  const { notices } = await load('PROT=4702\nPORT=1\nDATABASE_URL_FILE=/x\nDATABSE_URL=hunter2\n');
  expect(notices.sort()).toEqual([
    expect.stringMatching(/^DATABSE_URL in \S+\.env is not a variable of the service: [^\n]*$/),
    expect.stringMatching(/^PROT in \S+\.env is not a variable of the service: [^\n]*$/),
  ]);
  expect(notices.join()).not.toContain('hunter2');
});
