import { livePrefix } from '../../packages/platform/src/keys/format.js';
import { createKeyStore } from '../../packages/platform/src/keys/store.js';
import { IDENTITY } from '../../src/definition/identity.js';
import { PLANS } from '../../src/definition/plans.js';
import { SCOPES } from '../../src/definition/scopes.js';
import type { MigratedDatabase } from './database.js';

/** Limits that no round reaches */
const UNREACHED = { perMinute: 1_000_000, perDay: 1_000_000 };

export type Keys = Awaited<ReturnType<typeof issueKeys>>;

/** Issues keys as this version does, of every kind. */
export async function issueKeys({ owner }: MigratedDatabase) {
  const names = Object.keys(PLANS) as (keyof typeof PLANS)[];
  const store = createKeyStore(owner, livePrefix(IDENTITY.keyPrefix), SCOPES);
  const own = names.find((plan) => PLANS[plan] === undefined);
  if (own === undefined) throw new Error('There is no plan whose keys have limits of their own');
  const issue = (options: Partial<Parameters<typeof store.create>[0]>) =>
    store.create({ name: 'upgrade', plan: own, ...UNREACHED, ...options });
  const tomorrow = new Date(Date.now() + 86_400_000);
  const plans = names.map((plan) =>
    PLANS[plan] === undefined ? issue({ plan }) : store.create({ name: plan, plan }),
  );
  const scopes = SCOPES.map((scope) => issue({ name: scope, scopes: [scope] }));
  const [expiring, rotated, banned] = await Promise.all([
    issue({ owner: 'somebody', expiresAt: tomorrow }),
    issue({ name: 'rotated' }),
    issue({ name: 'banned' }),
  ]);
  const [replacing] = await store.rotateAll([rotated.apiKey.id], tomorrow);
  await store.ban(banned.apiKey.id, 86_400);
  const others = [
    ...(await Promise.all([...plans, ...scopes])),
    expiring,
    rotated,
    banned,
    ...(replacing ? [replacing] : []),
  ];
  return {
    /** With all scopes, and limits that no round reaches */
    main: (await issue({})).key,
    others: others.map(({ key }) => key),
    /** A key that may be ended, with all scopes */
    async issueEndable() {
      const { key, apiKey } = await issue({ name: 'endable' });
      return { key, hint: apiKey.hint };
    },
  };
}
