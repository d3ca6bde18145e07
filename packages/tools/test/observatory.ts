import type { Definition } from '@animal-store/platform/definition';
import { pageInput, pageOutput, text } from '@animal-store/platform/operations';
import { defineStore } from '@animal-store/platform/store';
import { z } from 'zod';

/** A store whose schemas have what a document can hold, and names that a client has itself. */
export const definition = {
  root: new URL('./', import.meta.url),
  identity: {
    name: 'observatory',
    title: 'Observatory Service',
    description: 'The telescopes of an observatory.',
    interfaceVersion: '1.0.0',
    keyPrefix: 'ob_',
    metricsPrefix: 'observatory_',
    embedded: { database: 'observatory', systemDir: '/var/lib/observatory' },
    grants: { clients: ['SELECT', 'INSERT'] },
    mainTable: 'clients',
    mainPath: '/clients',
    mainOperation: 'listClients',
  },
  windows: [{ name: 'minute', lengthMs: 60_000, field: 'perMinute' }],
  plans: { visitor: { perMinute: 10 } },
  fallbackPlan: 'visitor',
  developmentPlan: 'visitor',
  scopes: ['clients:read', 'clients:write'],
  errors: {
    clouds: {
      status: 409,
      trpcCode: 'CONFLICT',
      message: 'There are clouds.',
      description: 'the sky is not clear',
    },
  },
  loadPrisma: async () => {
    throw new Error('No operation runs here');
  },
} as const satisfies Definition;

const store = defineStore(definition);
const procedure = store.createProcedure<object>();
const id = z
  .int()
  .min(1)
  .max(1_000)
  .meta({ description: 'The id', examples: [1] });
const colour = z.enum(['red', 'a | b']).meta({ id: 'star-colour', description: 'A colour' });
const members = {
  name: text(1, 20).meta({ description: 'A name, which ends no */ comment', examples: ['Ada'] }),
  note: text(0, 20)
    .optional()
    .meta({ description: 'A note', examples: ['x'] }),
  strictNote: text(0, 20)
    .exactOptional()
    .meta({ description: 'A note', examples: ['x'] }),
};
const client = z
  .object({
    id,
    ...members,
    colour: colour.nullable(),
    'sky-band': z.union([z.enum(['u', 'v']), z.string()]),
    position: z.tuple([z.number(), z.number()]),
    magnitudes: z.record(z.string(), z.number()),
    counts: z.record(z.enum(['seen', 'missed']), z.int().min(0).max(9)),
    raw: z.unknown(),
    kind: z.literal('person'),
  })
  .meta({ id: 'Client', description: 'Who looks', examples: [] });
const clients = pageOutput(client).meta({ id: 'Clients', description: 'By ascending id' });

const read = { stability: 'beta', scope: 'clients:read' } as const;
const write = { stability: 'beta', scope: 'clients:write' } as const;
const listClients = procedure
  .meta({ ...read, openapi: { method: 'GET', path: '/clients', summary: 'List' } })
  .input(pageInput({}))
  .output(clients)
  .query(() => []);
const createClient = procedure
  .meta({ ...write, openapi: { method: 'POST', path: '/clients', summary: 'Add' }, idempotent: true })
  .input(z.object(members).meta({ id: 'NewClient', description: 'To add' }))
  .output(client)
  .mutation(() => {
    throw new store.ApiError('clouds');
  });

export const resource = {
  name: 'clients',
  description: 'Who looks',
  createStore: () => ({}),
  procedures: { listClients, createClient },
};
export const resources = [resource];

/** An operation whose input would have the name of another type */
export const twice = procedure
  .meta({ ...read, openapi: { method: 'GET', path: '/twice', summary: 'Twice' } })
  .input(pageInput({}))
  .output(z.object({ id }).meta({ id: 'FindTwiceInput' }))
  .query(() => ({ id: 1 }));
