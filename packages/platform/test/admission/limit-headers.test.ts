import { afterAll, expect, test } from 'vitest';
import { closeStores, createKey, openMemory, START_MS } from '../../../limits/test/support/limiter-stores.js';
import { limitHeaders } from '../../src/admission/announcements.js';

afterAll(closeStores);

test("the headers name the binding window, and both windows in the draft's form", async () => {
  const { limiter } = await openMemory();
  const result = await limiter.consume(createKey({ perMinute: 60, perDay: 1_000 }), 1);
  expect(limitHeaders(result)).toEqual({
    'x-ratelimit-limit': '60',
    'x-ratelimit-remaining': '59',
    'x-ratelimit-reset': String(START_MS / 1000 + 60),
    'ratelimit-policy': '"minute";q=60;w=60, "day";q=1000;w=86400',
    ratelimit: '"minute";r=59;t=60, "day";r=999;t=86400',
  });
});

test('Retry-After, Reset and t agree to the second, and none precedes the end of the window', async () => {
  const { limiter, advance, clock } = await openMemory();
  const subject = createKey({ perMinute: 1, perDay: 100 });
  await limiter.consume(subject, 1);
  for (const ms of [1, 999, 500, 30_250, 20_000]) {
    await advance(ms, subject.id);
    const result = await limiter.consume(subject, 1);
    const headers = limitHeaders(result);
    const retryMs = clock.nowMs + Number(result.retryAfterSeconds) * 1000;
    expect(Math.abs(Number(headers['x-ratelimit-reset']) * 1000 - retryMs)).toBeLessThan(1_000);
    expect(headers.ratelimit).toContain(`"minute";r=0;t=${result.retryAfterSeconds}, "day";r=99`);
  }
});
