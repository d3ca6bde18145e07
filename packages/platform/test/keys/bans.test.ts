import fc from 'fast-check';
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { definition, list } from '#operations-under-test';
import {
  closeStores,
  createKey,
  type Fixture,
  hasRedis,
  listStates,
  openMemory,
  openRedis,
  START_MS,
} from '../../../limits/test/support/limiter-stores.js';
import { MODEL_RUNS } from '../../../limits/test/support/model-runs.js';
import { checkLimits } from '../../src/admission/charge.js';
import { nextBanSeconds } from '../../src/contract/bans.js';
import type { Limits } from '../../src/definition/definition.js';
import type { ApiKey } from '../../src/keys/api-key.js';
import { createBans } from '../../src/keys/bans.js';
import { BansModel } from '../support/limits-model.js';

beforeEach(() => {
  vi.spyOn(performance, 'now').mockImplementation(() => clock.elapsedMs);
});
afterEach(() => {
  vi.restoreAllMocks();
  // Memory would have decided in its place.
  expect(listStates()).not.toContain('degraded');
});
afterAll(closeStores);

/** Of the node that the test uses */
let clock = { elapsedMs: 0 };

/** A node and the row of one key; the test controls the time and whether the database is available. */
function useNode(fixture: Fixture, limits: Limits) {
  const { limiter } = fixture;
  clock = fixture.clock;
  const database = { isAvailable: true };
  const logged: { readonly message: string; readonly details: object }[] = [];
  let row = createRow(limits);
  const now = () => fixture.clock.nowMs;
  const store = {
    async ban(_id: string, seconds: number, agoMs = 0) {
      if (!database.isAvailable) throw new Error('unavailable');
      const startsAt = new Date(now() - agoMs);
      if (row.bannedUntil !== null && row.bannedUntil > startsAt) return;
      row = { ...row, bannedUntil: new Date(startsAt.getTime() + seconds * 1000), banSeconds: seconds };
    },
  };
  const note = (details: object, message: string) => logged.push({ message, details });
  const bans = createBans({ store, now, log: { info: note, warn: note } });
  return {
    logged,
    database,
    readRow: () => row,
    changeRow(change: Partial<ApiKey>) {
      row = { ...row, ...change };
    },
    advance: (seconds: number) => fixture.advance(seconds * 1000, row.id),
    setClocks: (ms: number) => fixture.setClocks(ms, row.id),
    /** Sends requests one after the other; resolves with their error codes. */
    async send(count: number, { cost = 1, apiKey }: { cost?: number; apiKey?: ApiKey } = {}) {
      const codes: (string | undefined)[] = [];
      for (let n = 0; n < count; n += 1) codes.push((await this.check(cost, apiKey)).code);
      return codes;
    },
    async check(cost: number, apiKey: ApiKey = row) {
      const address = () => ({ kind: 'address', id: 'none', limits }) as const;
      const request = { apiKey, address, cost, freeForKey: undefined, countsTowardsBan: true };
      const { result, error } = await checkLimits(request, {
        definition,
        limiter,
        limitsPer: 'key',
        bans,
        now,
      });
      const seconds = error && Number(error.headers['retry-after']);
      return { code: error?.code, remaining: result.windows.map(({ remaining }) => remaining), seconds };
    },
  };
}

function createRow({ perMinute, perDay = 1_000_000 }: Limits): ApiKey {
  return {
    id: createKey({ perMinute }).id,
    name: 'limited',
    owner: null,
    hint: 'by_test_abcd',
    plan: 'enterprise',
    perMinute,
    perDay,
    scopes: [list.scope],
    createdAt: new Date(START_MS),
    expiresAt: null,
    previousExpiresAt: null,
    revokedAt: null,
    bannedUntil: null,
    banSeconds: null,
  };
}

const DENIED = 'rate_limit_exceeded';
const BANNED = 'api_key_banned';

test('a ban that was set by hand without a length counts as a first one', () => {
  const bannedUntil = new Date(START_MS);
  expect(nextBanSeconds({ bannedUntil, banSeconds: null }, START_MS + 1)).toBe(300);
});

describe.each([
  { name: 'memory', skipped: false, open: openMemory },
  { name: 'Redis', skipped: !hasRedis, open: openRedis },
])('denials counted in $name', ({ skipped, open }) => {
  const storeTest = test.skipIf(skipped);

  storeTest('the Retry-After of a ban fits in a timer, however late the ban ends', async () => {
    const node = useNode(await open(), { perMinute: 1, perDay: 100 });
    node.changeRow({ bannedUntil: new Date('2099-12-31T23:59:59Z') });
    const { code, seconds = 0 } = await node.check(1);
    expect(code).toBe('api_key_banned');
    expect(seconds * 1000).toBeLessThan(2 ** 31);
    expect(seconds).toBe(24 * 86_400);
    node.changeRow({ bannedUntil: new Date(START_MS + 3_600_000) });
    expect((await node.check(1)).seconds).toBe(3_600);
  });

  storeTest(
    'the denial that reaches the limit per minute starts a ban of five minutes, which the next response reports',
    async () => {
      const node = useNode(await open(), { perMinute: 10 });
      expect((await node.send(21)).slice(10)).toEqual([...Array(10).fill(DENIED), BANNED]);
      await node.advance(299);
      expect(await node.check(1)).toMatchObject({ code: BANNED, seconds: 1 });
      await node.advance(1);
      expect((await node.check(1)).code).toBeUndefined();
    },
  );

  storeTest('the minute of denials is measured by a clock that cannot be set', async () => {
    const node = useNode(await open(), { perMinute: 10 });
    await node.send(19);
    await node.setClocks(-3_600_000);
    expect(await node.send(1)).toEqual([DENIED]);
    expect(await node.send(1)).toEqual([BANNED]);
  });

  storeTest('a denied batch counts towards the ban with all of its calls', async () => {
    const node = useNode(await open(), { perMinute: 10 });
    expect(await node.send(1, { cost: 20 })).toEqual([DENIED]);
    expect(await node.send(1)).toEqual([BANNED]);
  });

  storeTest('requests during a ban neither prolong it nor count towards the next', async () => {
    const node = useNode(await open(), { perMinute: 5 });
    await node.send(10);
    const { bannedUntil } = node.readRow();
    expect(new Set(await node.send(50))).toEqual(new Set([BANNED]));
    expect(node.readRow()).toMatchObject({ bannedUntil, banSeconds: 300 });
  });

  storeTest(
    'each further ban within a day of the previous one lasts twice as long, up to a day',
    async () => {
      const node = useNode(await open(), { perMinute: 1 });
      const lengths: (number | undefined)[] = [];
      for (let round = 0; round < 11; round += 1) {
        await node.send(1, { cost: 2 });
        const { seconds = 0 } = await node.check(1);
        lengths.push(seconds);
        await node.advance(seconds);
      }
      expect(lengths).toEqual([300, 600, 1200, 2400, 4800, 9600, 19200, 38400, 76800, 86400, 86400]);
      await node.advance(86_400);
      await node.send(1, { cost: 2 });
      expect((await node.check(1)).seconds).toBe(300);
    },
  );

  storeTest(
    'many denials at once start one ban, logged once, with the name of the key beside its id',
    async () => {
      const node = useNode(await open(), { perMinute: 60 });
      await Promise.all(Array.from({ length: 1_000 }, () => node.check(1)));
      expect(node.readRow()).toMatchObject({ banSeconds: 300 });
      const { id, name } = node.readRow();
      expect(node.logged.filter(({ message }) => message.includes('banned'))).toMatchObject([
        { details: { keyId: id, keyName: name } },
      ]);
    },
  );

  storeTest(
    'the node that starts a ban enforces it at once, before its copy of the row shows it',
    async () => {
      const node = useNode(await open(), { perMinute: 5 });
      const oldCopy = node.readRow();
      expect((await node.send(11, { apiKey: oldCopy })).at(-1)).toBe(BANNED);
    },
  );

  storeTest('a ban in the row is enforced by a node that has denied nothing, and so is its end', async () => {
    const node = useNode(await open(), { perMinute: 5 });
    node.changeRow({ bannedUntil: new Date(START_MS + 60_000), banSeconds: 300 });
    expect(await node.check(1)).toMatchObject({ code: BANNED, seconds: 60, remaining: [5, 1_000_000] });
    node.changeRow({ bannedUntil: null });
    expect((await node.check(1)).code).toBeUndefined();
  });

  storeTest(
    'a ban that is lifted in the row ends on the node that started it, and the next one is not doubled',
    async () => {
      const node = useNode(await open(), { perMinute: 5 });
      await node.send(11);
      node.changeRow({ bannedUntil: null, banSeconds: null });
      await node.advance(2);
      expect(await node.send(6)).toEqual([...Array(5).fill(DENIED), BANNED]);
      expect(node.readRow().banSeconds).toBe(300);
    },
  );

  storeTest(
    'while the database is unavailable a ban holds on its node, and is stored when the database is back',
    async () => {
      const fixture = await open();
      vi.useFakeTimers({ toFake: ['setTimeout'] });
      const node = useNode(fixture, { perMinute: 5 });
      node.database.isAvailable = false;
      await node.send(10);
      await node.advance(60);
      expect(await node.send(1)).toEqual([BANNED]);
      expect(node.readRow().bannedUntil).toBeNull();
      node.database.isAvailable = true;
      await vi.advanceTimersByTimeAsync(1_000);
      vi.useRealTimers();
      expect(node.readRow().bannedUntil).toEqual(new Date(START_MS + 300_000));
      expect(node.logged.filter(({ message }) => message.includes('not stored'))).toHaveLength(1);
    },
  );

  storeTest(
    'any interleaving of calls, batches, time, changed limits and unbans gives the results of the contract',
    async () => {
      const limits = fc.record({
        perMinute: fc.integer({ min: 1, max: 8 }),
        perDay: fc.integer({ min: 1, max: 20 }),
      });
      const step = fc.oneof(
        { weight: 6, arbitrary: fc.record({ cost: fc.integer({ min: 1, max: 6 }) }) },
        {
          weight: 2,
          arbitrary: fc.record({ seconds: fc.constantFrom(2, 30, 58, 60, 61, 300, 3_600, 86_400) }),
        },
        { weight: 1, arbitrary: fc.record({ limits }) },
        { weight: 1, arbitrary: fc.constant({ unban: true }) },
      );
      const steps = fc.array(step, { maxLength: 60, size: 'max' });
      const fixture = await open();
      const property = fc.asyncProperty(limits, steps, async (first, actions) => {
        const node = useNode(fixture, first);
        const model = new BansModel();
        const advance = async (seconds: number) => {
          await node.advance(seconds);
          model.nowSeconds += seconds;
        };
        let current: Limits = first;
        for (const action of actions) {
          if ('cost' in action)
            expect(await node.check(action.cost)).toEqual(model.request(current, action.cost));
          else if ('seconds' in action) await advance(action.seconds);
          else if ('limits' in action) {
            current = action.limits;
            node.changeRow(action.limits);
          } else {
            node.changeRow({ bannedUntil: null, banSeconds: null });
            model.unban();
            // Within this time, the row takes precedence over the memory of the node that started the ban.
            await advance(2);
          }
        }
      });
      await fc.assert(property, MODEL_RUNS);
    },
  );
});
