import type { IdempotencyKey } from '@animal-store/platform/tables';
import {
  type Caller,
  createCaller,
  createTestDatabase as createDatabase,
  type StoreOptions,
  type StoreUnderTest,
  startStore,
} from '@animal-store/platform/testing';
import { pino } from 'pino';
import { afterAll, beforeAll } from 'vitest';
import type { z } from 'zod';
import {
  createItemStore,
  type Database,
  type Item,
  type ItemStore,
  newItemSchema,
  definition as ownDefinition,
  resources as ownResources,
} from '#operations-under-test';

/** Creates a database of the store under test, and resolves with the URL of its owner. */
export const createTestDatabase = (template?: string): Promise<string> =>
  createDatabase(ownDefinition, template);

/** Its create takes what a client may send, so that a test spells out only what it needs. */
interface TestItems extends Omit<ItemStore, 'create'> {
  create(input: z.input<typeof newItemSchema>, key?: IdempotencyKey): Promise<Item>;
}

type Prisma = Awaited<ReturnType<Database['loadPrisma']>>;

export interface TestService extends StoreUnderTest<Prisma> {
  readonly items: TestItems;
}

/** PUBLIC_URL of the services under test, unless a test overrides it. */
export const PUBLIC_URL = 'https://service.example/store';
const STAGING_URL = 'https://staging.service.example/store';

/** Many tests are about failures. */
const SILENT = pino({ level: 'silent' });

export type TestServiceOptions = Partial<StoreOptions>;

/** Starts the store under test. Options replace its parts. */
export async function startService(options: TestServiceOptions = {}): Promise<TestService> {
  const store = await startStore({
    resources: ownResources,
    corsOrigins: [],
    publicUrl: PUBLIC_URL,
    stagingUrl: STAGING_URL,
    log: SILENT,
    ...options,
    // A changed definition has the same Prisma client.
    definition: { ...(options.definition ?? ownDefinition), loadPrisma: ownDefinition.loadPrisma },
  });
  const items = createItemStore(store.serviceDatabase);
  return {
    ...store,
    items: {
      ...items,
      create: async (input, key) => (await items.create(newItemSchema.parse(input), key)).output,
    },
  };
}

/** A service for all tests of a file, which calls this at its top: it runs by the file's own first hook. */
export function useService(options: TestServiceOptions = {}): { service: TestService; call: Caller } {
  const service = {} as TestService;
  beforeAll(async () => void Object.assign(service, await startService(options)));
  afterAll(() => service.close());
  return { service, call: (path, init) => createCaller(service)(path, init) };
}
