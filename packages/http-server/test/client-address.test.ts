import Fastify from 'fastify';
import { describe, expect, test } from 'vitest';
import { addressId, createProxyTrust, findClientAddress } from '../src/client-address.js';

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
      ['10.1.1.1', '10.1.1.1:4711', '::ffff:10.1.1.1', '::ffff:a01:101'],
      ['11.0.0.1', '11.0.0.1:4711', '::a01:101', 'garbage', undefined, ''],
    ],
    ['::ffff:10.0.0.0/104', ['10.1.1.1', '::ffff:10.1.1.1'], ['11.0.0.1', '::1']],
    [
      'fe80::/10',
      ['fe80::1', 'fe80::1%br-abc', 'fe80::1%a_b', 'febf::1%eth0', '[fe80::1%eth0]:80', '[fe80::1]:443'],
      ['fec0::1%eth0', '::1', '[fec0::1]:443'],
    ],
    ['fe80::1', ['fe80::1', 'fe80::1%br-abc'], ['fe80::2', 'fe80::2%br-abc']],
  ])('as %s', (proxy, trusted, others) => {
    const isTrusted = createProxyTrust([proxy]);
    for (const peer of trusted) expect([peer, isTrusted(peer)]).toEqual([peer, true]);
    for (const peer of others) expect([peer, isTrusted(peer)]).toEqual([peer, false]);
  });
});

test('an IPv4 address is counted whole, an IPv6 address by its /64, a mapped one as IPv4, and all without port and zone', () => {
  const ids = {
    '203.0.113.7': '203.0.113.7',
    '::ffff:203.0.113.7': '203.0.113.7',
    '::FFFF:cb00:7107': '203.0.113.7',
    '2001:db8:1:2:3:4:5:6': '2001:db8:1:2::/64',
    '2001:0DB8:1:2::9': '2001:db8:1:2::/64',
    '2001:db8::1': '2001:db8:0:0::/64',
    '::1': '0:0:0:0::/64',
    'fe80::1%eth0': 'fe80:0:0:0::/64',
    '203.0.113.7:5678': '203.0.113.7',
    '[::ffff:203.0.113.7]:443': '203.0.113.7',
    '[2001:db8::2]:443': '2001:db8:0:0::/64',
    '[2001:db8::3]': '2001:db8:0:0::/64',
    '[fe80::1%br-abc]:443': 'fe80:0:0:0::/64',
    'fe80::1%': 'fe80:0:0:0::/64',
    _hidden: 'unknown',
    '[]:443': 'unknown',
    ':443': 'unknown',
    '203.0.113.7:x': 'unknown',
    '[2001:db8::1]x': 'unknown',
    '1.2.3.4%eth0': 'unknown',
    'not an address': 'unknown',
    '': 'unknown',
  };
  expect(Object.keys(ids).map(addressId)).toEqual(Object.values(ids));
  expect(addressId(undefined)).toBe('unknown');
});
