import { detectOutage } from '../connections/outage.js';
import { OPERATION_TIMEOUT_MS, withTimeout } from '../timing/timeouts.js';
import type { Authenticator } from './authenticator.js';
import type { KeyStore } from './store.js';

/** Revokes a key, and lets this process forget what it knows of it. */
export function createRevoke(
  keys: Pick<KeyStore, 'revoke'>,
  authenticator: Pick<Authenticator, 'forget'>,
  now: () => number,
) {
  return async (id: string): Promise<void> => {
    const revocation = keys.revoke(id, new Date(now()));
    // If its result is late or lost, the key may be revoked all the same.
    await detectOutage(withTimeout(OPERATION_TIMEOUT_MS, revocation)).finally(() => authenticator.forget(id));
  };
}
