import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { definition } from '#operations-under-test';
import { limitsOf, toPlanTable } from '../packages/platform/src/contract/plans.js';
import { PLANS, WINDOWS } from '../src/definition/plans.js';
import { Plan as DatabasePlan } from '../src/generated/client.js';

test('every plan has the limits of the contract, and an enterprise key its own', () => {
  const none = { perMinute: null, perDay: null };
  expect(limitsOf(definition, { plan: 'free', ...none })).toEqual({ perMinute: 60, perDay: 1_000 });
  expect(limitsOf(definition, { plan: 'pro', ...none })).toEqual({ perMinute: 300, perDay: 10_000 });
  expect(limitsOf(definition, { plan: 'business', ...none })).toEqual({ perMinute: 1_000, perDay: 100_000 });
  expect(limitsOf(definition, { plan: 'enterprise', perMinute: 7, perDay: 9 })).toEqual({
    perMinute: 7,
    perDay: 9,
  });
});

test('a key that lacks the limits of its plan gets those of the free plan', () => {
  expect(limitsOf(definition, { plan: 'enterprise', perMinute: null, perDay: null })).toEqual(PLANS.free);
});

test('the first window is the minute, longer ones follow, and their names are those of headers', () => {
  expect(WINDOWS[0]).toEqual({ name: 'minute', lengthMs: 60_000, field: 'perMinute' });
  const lengths = WINDOWS.map(({ lengthMs }) => lengthMs);
  expect(lengths).toEqual(lengths.toSorted((a, b) => a - b));
  for (const { name } of WINDOWS) expect(name).toMatch(/^[a-z]+$/);
});

test('the plans are those of schema.prisma', () => {
  expect(Object.keys(PLANS).sort()).toEqual(Object.keys(DatabasePlan).sort());
});

test('the OpenAPI document shows the plans as they are', async () => {
  const document = JSON.parse(await readFile('docs/openapi.json', 'utf8'));
  expect(document.info.description, 'to update it: npm run docs:update').toContain(toPlanTable(definition));
});
