import { createCaller } from '@animal-store/platform/testing';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { list } from '#operations-under-test';
import { createProcedure, type RequestContext } from '../../src/operations/builder.js';
import { integer } from '../../src/operations/input.js';
import type { Resource } from '../../src/operations/resource.js';
import { createHeldLimiter, type HeldLimiter } from '../support/held-limiter.js';
import { startService, type TestService } from '../support/test-service.js';

// Queries that have to know the decision on their limit, or may do more than read.

const NOW = Date.now();
const procedure = createProcedure<object>();
let runs = 0;

const describeQuery = (name: string) => ({
  openapi: { method: 'GET', path: `/${name}`, summary: 'Read' } as const,
  stability: 'beta' as const,
  scope: list.scope,
});
const output = z.array(integer(0, 1_000_000));
const readRemaining = ({ ctx }: { readonly ctx: RequestContext }) => {
  runs += 1;
  return ctx.limits.map(({ remaining }) => remaining);
};
const resource: Resource = {
  name: 'limits',
  description: 'What is left',
  createStore: () => ({}),
  procedures: {
    waits: procedure
      .meta({ ...describeQuery('waits'), waitsForLimit: true })
      .output(output)
      .query(readRemaining),
    uses: procedure
      .use(({ next }) => next())
      .meta(describeQuery('uses'))
      .output(output)
      .query(readRemaining),
    forgets: procedure.meta(describeQuery('forgets')).output(output).query(readRemaining),
  },
};

let limiter: HeldLimiter;
let service: TestService;
const lines: { readonly err?: { readonly message: string } }[] = [];
beforeAll(async () => {
  limiter = await createHeldLimiter(() => NOW);
  const log = pino({ level: 'error' }, { write: (line) => lines.push(JSON.parse(line)) });
  service = await startService({ resources: [resource], limiter, log, now: () => NOW });
});
afterAll(() => service.close());

async function issue(perMinute: number) {
  const limits = { plan: 'enterprise', perMinute, perDay: 100 } as const;
  const { key } = await service.keys.create({ name: 'own', expiresAt: null, ...limits });
  return createCaller({ url: service.url, key });
}

test.each([
  ['says that it waits', 'waits'],
  ['has a .use()', 'uses'],
])(
  'a query that %s knows what is left of its limit, and does not run if it is denied',
  async (_what, name) => {
    for (const path of [`/v1/${name}`, `/trpc/${name}`]) {
      const call = await issue(1);
      runs = 0;
      const { status, body } = await call(path);
      expect([status, body.result?.data ?? body]).toEqual([200, [0, 99]]);
      limiter.knowsCounts = false;
      expect((await call(path)).status).toBe(429);
      limiter.knowsCounts = true;
      expect(runs).toBe(1);
    }
  },
);

test('a query that reads what is left without having declared it fails, and the log says what to declare', async () => {
  const call = await issue(10);
  for (const path of ['/v1/forgets', '/trpc/forgets']) {
    lines.length = 0;
    expect((await call(path)).status).toBe(500);
    expect(lines.map(({ err }) => err?.message)).toEqual([expect.stringContaining('waitsForLimit: true')]);
  }
});
