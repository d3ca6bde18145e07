import { hostname, userInfo } from 'node:os';
import { afterEach, expect, test, vi } from 'vitest';
import { describeCaller } from '../../src/cli/caller.js';

afterEach(() => vi.unstubAllEnvs());

test('a command names itself, the account that runs it, or that called sudo, and the machine', () => {
  vi.stubEnv('SUDO_USER', '');
  const own = `boatyard keys revoke by ${userInfo().username}@${hostname()}`;
  expect(describeCaller('boatyard', 'keys revoke')).toBe(own.slice(0, 63));
  vi.stubEnv('SUDO_USER', 'alice');
  expect(describeCaller('boatyard', 'studio')).toBe(`boatyard studio by alice@${hostname()}`.slice(0, 63));
});

test('the name is one that PostgreSQL keeps as it is: 63 bytes of printable ASCII', () => {
  vi.stubEnv('SUDO_USER', `zoë\n${'x'.repeat(100)}`);
  const name = describeCaller('boatyard', 'keys set-scopes');
  expect(name).toMatch(/^[ -~]{63}$/);
  expect(name).toContain('by zo??x');
});
