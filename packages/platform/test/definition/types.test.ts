import { createTRPCClient, httpLink, TRPCClientError } from '@trpc/client';
import { expect, test } from 'vitest';
import { z } from 'zod';
import type { Definition } from '../../src/definition/definition.js';
import { defineStore } from '../../src/store/define-store.js';

// What TypeScript knows of a store by its definition. The lines that must not compile are held by the check of types.

const definition = {
  root: new URL('../store/', import.meta.url),
  identity: {
    name: 'kennel',
    title: 'Kennel Service',
    description: 'Dogs that wait for a walk.',
    interfaceVersion: '1.0.0',
    keyPrefix: 'ke_',
    metricsPrefix: 'kennel_',
    embedded: { database: 'kennel', systemDir: '/var/lib/kennel' },
    mainTable: 'dogs',
    mainPath: '/dogs',
    mainOperation: 'listDogs',
    grants: {},
  },
  windows: [
    { name: 'minute', lengthMs: 60_000, field: 'perMinute' },
    { name: 'hour', lengthMs: 3_600_000, field: 'perHour' },
    { name: 'day', lengthMs: 86_400_000, field: 'perDay' },
  ],
  plans: {
    puppy: { perMinute: 30, perHour: 500, perDay: 1_000 },
    pack: { perMinute: 600, perDay: 50_000 },
    own: undefined,
  },
  fallbackPlan: 'puppy',
  developmentPlan: 'pack',
  scopes: ['dogs:read', 'dogs:walk'],
  errors: {
    dog_asleep: {
      status: 409,
      trpcCode: 'CONFLICT',
      message: 'The dog is asleep.',
      description: 'the dog is asleep',
    },
  },
  loadPrisma: async () => ({ PrismaClient: class {} as never }),
} as const satisfies Definition;

const { ApiError, createProcedure, createRouter, ownKey } = defineStore(definition);
const meta = { openapi: { method: 'GET', path: '/dogs', summary: 'List dogs' }, stability: 'beta' } as const;

test('an operation names scopes and error codes of its store, and codes of the platform', () => {
  const procedure = createProcedure();
  procedure.meta({ ...meta, scope: 'dogs:read', errors: ['dog_asleep', 'not_found'] });
  procedure.meta({ ...meta, scope: 'any' });
  // @ts-expect-error a scope that the store does not have
  procedure.meta({ ...meta, scope: 'cats:read' });
  // @ts-expect-error a code that neither the store nor the platform has
  procedure.meta({ ...meta, scope: 'any', errors: ['dog_awake'] });
  expect(new ApiError('dog_asleep').body).toMatchObject({ code: 'dog_asleep', status: 409 });
  expect(new ApiError('not_found').status).toBe(404);
  // @ts-expect-error a code that neither the store nor the platform has
  expect(() => new ApiError('dog_awake')).toThrow();
});

test('a handler knows the plans and the windows of its store', () => {
  createProcedure()
    .meta({ ...meta, scope: 'any' })
    .output(z.void())
    .query(({ ctx }) => {
      const plan: 'puppy' | 'pack' | 'own' = ctx.apiKey.plan;
      const windows: ('minute' | 'hour' | 'day')[] = ctx.limits.map((limit) => limit.name);
      // @ts-expect-error a plan that the store does not have
      if (plan === 'free') return;
      // @ts-expect-error a window that the store does not have
      windows.includes('week');
    });
  expect(Object.keys(definition.plans)).toEqual(['puppy', 'pack', 'own']);
});

test('a typed client knows the codes of its store, and what getKey says of a key', async () => {
  const router = createRouter([ownKey]);
  const client = createTRPCClient<typeof router>({ links: [httpLink({ url: 'http://127.0.0.1:1' })] });
  const error = await client.getKey.query().catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(TRPCClientError);
  const codeOf = ({ data }: TRPCClientError<typeof router>) => data?.error.code;
  const code = codeOf(error as TRPCClientError<typeof router>);
  expect([code === 'dog_asleep', code === 'not_found']).toEqual([false, false]);
  // @ts-expect-error a code that neither the store nor the platform has
  expect(code === 'dog_awake').toBe(false);
  type OwnKey = Awaited<ReturnType<typeof client.getKey.query>>;
  const plans: OwnKey['plan'][] = ['puppy', 'pack', 'own'];
  // @ts-expect-error a plan that the store does not have
  plans.push('free');
  const scopes: OwnKey['scopes'] = ['dogs:read', 'dogs:walk'];
  // @ts-expect-error a scope that the store does not have
  scopes.push('cats:read');
  const windows: OwnKey['limits'][number]['window'][] = ['minute', 'hour', 'day'];
  // @ts-expect-error a window that the store does not have
  windows.push('week');
});

test('a definition cannot have a code of the platform, a status that is no number, or a plan without a minute', () => {
  const conflict = { status: 409, trpcCode: 'CONFLICT', message: 'No.', description: 'no' } as const;
  const definitions: Definition[] = [
    { ...definition, errors: { cat_asleep: conflict } },
    // @ts-expect-error a code of the platform
    { ...definition, errors: { not_found: conflict } },
    // @ts-expect-error a status that is no number
    { ...definition, errors: { cat_asleep: { ...conflict, status: '409' } } },
    // @ts-expect-error a code that tRPC does not have
    { ...definition, errors: { cat_asleep: { ...conflict, trpcCode: 'ASLEEP' } } },
    // @ts-expect-error a plan without a limit per minute
    { ...definition, plans: { puppy: { perDay: 5 } } },
    // @ts-expect-error no scope at all
    { ...definition, scopes: [] },
  ];
  expect(definitions.length).toBeGreaterThan(1);
});
