import Fastify from 'fastify';
import { afterEach, describe, expect, test } from 'vitest';
import {
  addressId,
  createProxyTrust,
  findClientAddress,
} from '../../../src/platform/server/client-address.js';
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

test.each([
  ['no header', ['127.0.0.1'], undefined],
  ['no proxy', [], '203.0.113.7'],
  ['an untrusted peer', ['10.0.0.0/8'], '203.0.113.7'],
  ['one proxy', ['127.0.0.1'], '203.0.113.7'],
  ['a client that forges a header', ['127.0.0.1'], '1.1.1.1, 203.0.113.7'],
  ['two proxies', ['127.0.0.1', '10.0.0.0/8'], '1.1.1.1,203.0.113.7 ,  10.1.2.3'],
  ['only proxies', ['127.0.0.1', '10.0.0.0/8'], '10.1.2.3, 10.1.2.4'],
])(
  'a request waits among those of the address that it is counted for: %s',
  async (_name, proxies, forwarded) => {
    const trustProxy = createProxyTrust(proxies);
    const app = Fastify({ trustProxy });
    app.get('/', ({ ip, raw }) => ({ ip, found: findClientAddress(raw, trustProxy) }));
    const headers = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded };
    const { ip, found } = (await app.inject({ url: '/', headers })).json();
    expect(found).toBe(ip);
  },
);

describe('a peer is trusted', () => {
  test.each<[proxy: string, trusted: string[], others: (string | undefined)[]]>([
    [
      '10.0.0.0/8',
      ['10.1.1.1', '::ffff:10.1.1.1', '::ffff:a01:101'],
      ['11.0.0.1', '::a01:101', undefined, ''],
    ],
    ['::ffff:10.0.0.0/104', ['10.1.1.1', '::ffff:10.1.1.1'], ['11.0.0.1', '::1']],
    ['fe80::/10', ['fe80::1', 'fe80::1%br-abc', 'fe80::1%a_b', 'febf::1%eth0'], ['fec0::1%eth0', '::1']],
    ['fe80::1', ['fe80::1', 'fe80::1%br-abc'], ['fe80::2', 'fe80::2%br-abc']],
  ])('as %s', (proxy, trusted, others) => {
    const isTrusted = createProxyTrust([proxy]);
    for (const peer of trusted) expect([peer, isTrusted(peer)]).toEqual([peer, true]);
    for (const peer of others) expect([peer, isTrusted(peer)]).toEqual([peer, false]);
  });
});

test('an IPv4 address is counted whole, an IPv6 address by its /64, and a mapped one as IPv4', () => {
  const ids = {
    '203.0.113.7': '203.0.113.7',
    '::ffff:203.0.113.7': '203.0.113.7',
    '::FFFF:cb00:7107': '203.0.113.7',
    '2001:db8:1:2:3:4:5:6': '2001:db8:1:2::/64',
    '2001:0DB8:1:2::9': '2001:db8:1:2::/64',
    '2001:db8::1': '2001:db8:0:0::/64',
    '::1': '0:0:0:0::/64',
    'fe80::1%eth0': 'fe80:0:0:0::/64',
    'not an address': 'unknown',
    '': 'unknown',
  };
  expect(Object.keys(ids).map(addressId)).toEqual(Object.values(ids));
  expect(addressId(undefined)).toBe('unknown');
});
