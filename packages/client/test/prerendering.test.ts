import { afterEach, expect, test, vi } from 'vitest';
import { list } from '../../../test/support/operations-under-test.js';

afterEach(() => vi.restoreAllMocks());

test('a server component may import the module, create a client, and call it: nothing asks Date for the time', async () => {
  const asked = vi.spyOn(Date, 'now');
  const { createClient } = await import('@animal-store/client');
  const headers = { ratelimit: '"minute";r=59;t=60', 'ratelimit-policy': '"minute";q=60;w=60' };
  const limits = { 'x-ratelimit-limit': '60', 'x-ratelimit-remaining': '59' };
  const respond = async () =>
    Response.json([{ result: { data: [] } }], { headers: { ...headers, ...limits } });
  const client = createClient({ baseUrl: 'http://127.0.0.1:1', apiKey: 'x', fetch: respond });
  await client[list.name].query();
  const { resetAtMs = 0 } = client.limits.current ?? {};
  expect(asked).not.toHaveBeenCalled();
  // It is Unix time all the same.
  expect(Math.abs(resetAtMs - 60_000 - Date.now())).toBeLessThan(30_000);
});
