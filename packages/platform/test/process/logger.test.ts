import { runNode } from '@animal-store/platform/testing';
import { expect, test } from 'vitest';
import { definition, list } from '#operations-under-test';
import { generateKey, testPrefix } from '../../src/keys/format.js';
import { formatMessage } from '../../src/process/logger.js';
import { builtModule } from '../support/process.js';

const request = { msg: 'request', method: 'GET', status: 200, durationMs: 3.7 };

test.each([
  [{ protocol: 'rest', operation: list.name, route: list.path }, `GET ${list.path} 200 4 ms`],
  [
    { protocol: 'trpc', operation: `${list.name},getKey`, route: '/trpc/{path}' },
    `GET ${list.trpc},getKey 200 4 ms`,
  ],
  [
    { protocol: 'rest', route: 'unknown', path: '/v1/nope', status: 404, code: 'not_found' },
    'GET /v1/nope 404 not_found 4 ms',
  ],
  [
    { protocol: 'rest', route: list.path, status: 500, code: 'internal_error', rehearsed: true },
    `GET ${list.path} 500 internal_error (rehearsed) 4 ms`,
  ],
])('in development a request is a short line that says what was called: %o', (fields, line) => {
  expect(formatMessage({ ...request, ...fields })).toBe(line);
});

test('in development a line that is no request names the request that it belongs to, or the key that it is about', () => {
  expect(formatMessage({ msg: 'failed', reqId: 'abc', keyId: '0b54e7c0' })).toBe('failed (request abc)');
  expect(formatMessage({ msg: 'a key is banned', keyId: '0b54e7c0' })).toBe('a key is banned (key 0b54e7c0)');
  expect(formatMessage({ msg: 'listening' })).toBe('listening');
});

/** What the process of a service would write, from the message of an error to a member of an object. */
const SCRIPT = `
  import { createLogger } from '${builtModule('process/logger.js')}';
  const { log, close } = await createLogger(${JSON.stringify(definition.identity)}, { appEnv: process.env.APP_ENV, logLevel: 'info' });
  const { KEY } = process.env;
  const cause = Object.assign(new Error('cause: ' + KEY), { where: KEY });
  log.error({ err: new Error('failed for ' + KEY, { cause }), list: [{ text: '"' + KEY + KEY }] }, 'an error with ' + KEY);
  await close(5_000);`;

test.each(['production', 'development'])(
  'no line of the log in %s has a key, wherever it comes from',
  async (APP_ENV) => {
    const key = generateKey(testPrefix('by_'));
    const program = runNode(['--input-type=module', '--eval', SCRIPT], { APP_ENV, KEY: key });
    expect(await program.ended, program.output()).toBe(0);
    expect(program.output()).toContain(`an error with ${key.slice(0, 12)}…`);
    expect(program.output()).toContain(`failed for ${key.slice(0, 12)}…`);
    expect(program.output()).not.toContain(key.slice(0, 20));
  },
);
