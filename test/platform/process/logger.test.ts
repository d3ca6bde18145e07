import { expect, test } from 'vitest';
import { formatMessage } from '../../../src/platform/process/logger.js';

const request = { msg: 'request', method: 'GET', status: 200, durationMs: 3.7 };

test.each([
  [{ protocol: 'rest', operation: 'listPets', route: '/v1/pets' }, 'GET /v1/pets 200 4 ms'],
  [
    { protocol: 'trpc', operation: 'listPets,getKey', route: '/trpc/{path}' },
    'GET /trpc/listPets,getKey 200 4 ms',
  ],
  [
    { protocol: 'rest', route: 'unknown', path: '/v1/nope', status: 404, code: 'not_found' },
    'GET /v1/nope 404 not_found 4 ms',
  ],
  [
    { protocol: 'rest', route: '/v1/pets', status: 500, code: 'internal_error', rehearsed: true },
    'GET /v1/pets 500 internal_error (rehearsed) 4 ms',
  ],
])('in development a request is a short line that says what was called: %o', (fields, line) => {
  expect(formatMessage({ ...request, ...fields })).toBe(line);
});
