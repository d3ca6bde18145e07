import type { KeyStore } from '../keys/store.js';

/** How long before its expiry a key shows in the metrics. */
const EXPIRY_WARNING_MS = 7 * 86_400_000;

/** How many keys are banned, and how many expire soon, by plan. */
export async function countKeys(keys: Pick<KeyStore, 'countBanned' | 'countExpiring'>, at: number) {
  const [now, soon] = [new Date(at), new Date(at + EXPIRY_WARNING_MS)];
  const [banned, expiring] = await Promise.all([keys.countBanned(now), keys.countExpiring(now, soon)]);
  return { banned, expiring };
}
