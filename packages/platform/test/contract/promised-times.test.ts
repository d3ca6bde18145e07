import { expect, test } from 'vitest';
import { KEY_TTL_MS } from '../../src/keys/known-keys.js';
import {
  KEY_LOOKUP_TIMEOUT_MS,
  OPERATION_TIMEOUT_MS,
  READINESS_TIMEOUT_MS,
  REDIS_TIMEOUT_MS,
} from '../../src/timing/timeouts.js';

// Other tests show that each of these times ends what it is for. They measure nothing, because a busy machine is late.

test('a request that waits for the database or Redis gets its 503 within 3 s, and so does a readiness probe', () => {
  expect(KEY_LOOKUP_TIMEOUT_MS + REDIS_TIMEOUT_MS + OPERATION_TIMEOUT_MS).toBeLessThan(3_000);
  expect(READINESS_TIMEOUT_MS).toBeLessThan(3_000);
});

test('a change of a key takes effect within 2 s', () => {
  expect(KEY_TTL_MS).toBeLessThan(2_000);
});
