import { afterEach, expect, test } from 'vitest';
import { list } from '../../support/operations-under-test.js';
import {
  createCaller,
  createTestDatabase,
  startService,
  type TestResponse,
  type TestService,
} from '../../support/test-service.js';

const LIMIT = 100;
const databaseUrl = await createTestDatabase();

let service: TestService | undefined;

afterEach(async () => {
  await service?.close();
  service = undefined;
});

/** A service behind a trusted proxy, and a function that calls it without a key on behalf of an address. */
async function serveBehindProxy(trustProxy: readonly string[]) {
  service = await startService({ databaseUrl, anonymousPerMinute: LIMIT, trustProxy });
  const call = createCaller(service);
  return (forwarded: string) => call(list.path, { key: null, headers: { 'x-forwarded-for': forwarded } });
}

/** How often the address that was just counted has been counted. */
function countOf({ status, headers }: TestResponse): number {
  expect(status).toBe(401);
  return LIMIT - Number(headers.get('x-ratelimit-remaining'));
}

test.each([
  ['IPv4', ['203.0.113.7', '203.0.113.7:5678', '203.0.113.7:1', '[::ffff:203.0.113.7]:443']],
  ['IPv6', ['2001:db8::1', '[2001:db8::2]:443', '[2001:db8::3]', '[2001:db8::4]:65535']],
  [
    'link-local',
    ['fe80::1', 'fe80::1%br-abc', 'fe80::1%eth0', 'fe80::1%a_b', '[fe80::1%br-abc]:443', 'fe80::1%'],
  ],
  ['no address', ['unknown', '_hidden', '[]:443', ':443', '203.0.113.7:x', '[2001:db8::1]x', '1.2.3.4%eth0']],
])('forwarded addresses are counted without port and zone: %s', async (_name, addresses) => {
  const from = await serveBehindProxy(['127.0.0.1']);
  for (const [index, address] of addresses.entries()) {
    expect([address, countOf(await from(address))]).toEqual([address, index + 1]);
  }
});

test('forwarded addresses with ports are counted apart', async () => {
  const from = await serveBehindProxy(['127.0.0.1']);
  for (const address of ['203.0.113.7:1', '203.0.113.8:1', '[2001:db8::1]:1', '[2001:db8:0:1::1]:1']) {
    expect([address, countOf(await from(address))]).toEqual([address, 1]);
  }
});

test('a trusted proxy in the chain is recognised with a port and a zone, and an unknown one is the client', async () => {
  const from = await serveBehindProxy(['127.0.0.1', '10.0.0.0/8', 'fe80::/10', '2001:db8:ffff::/48']);
  const hops = ['10.1.2.3:4711', 'fe80::9%br-abc', '[fe80::9%eth0]:80', '[2001:db8:ffff::1]:443'];
  for (const [index, hop] of hops.entries()) {
    expect([hop, countOf(await from(`203.0.113.7:80, ${hop}`))]).toEqual([hop, index + 1]);
  }
  for (const hop of ['11.1.2.3:4711', '[2001:db8:fffe::1]:443', 'garbage']) {
    expect([hop, countOf(await from(`203.0.113.7:80, ${hop}`))]).toEqual([hop, 1]);
  }
});
