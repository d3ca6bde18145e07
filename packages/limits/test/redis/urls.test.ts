import { expect, test } from 'vitest';
import { parseSentinelUrl } from '../../src/redis/urls.js';

const PLAIN = {
  sentinels: [{ host: 'a', port: 26_379 }],
  name: 'limits',
  username: '',
  password: '',
  db: 0,
};

test.each([
  ['redis+sentinel://a/limits', PLAIN],
  ['rediss+sentinel://a/limits', { ...PLAIN, tls: {}, sentinelTLS: {} }],
  [
    'redis+sentinel://a:5000,b.example,[fe80::1]:5001/my-primary.1',
    {
      ...PLAIN,
      name: 'my-primary.1',
      sentinels: [
        { host: 'a', port: 5_000 },
        { host: 'b.example', port: 26_379 },
        { host: 'fe80::1', port: 5_001 },
      ],
    },
  ],
  ['redis+sentinel://:a+b:c%40d,%5E|@a/limits', { ...PLAIN, password: 'a+b:c@d,^|' }],
  [
    'redis+sentinel://user:password@a/limits?sentinelUsername=watcher&sentinelPassword=a+b%26c&db=3',
    {
      ...PLAIN,
      username: 'user',
      password: 'password',
      sentinelUsername: 'watcher',
      sentinelPassword: 'a+b&c',
      db: 3,
    },
  ],
])('%s: hosts, name, users, passwords and database are read', (url, parsed) => {
  expect(parseSentinelUrl(url)).toEqual(parsed);
});
