import {
  asServiceRole,
  type Caller,
  createCaller,
  createTestDatabase as createDatabase,
  readServers,
  type StoreOptions,
  startStore,
} from '@animal-store/platform/testing';
import { pino } from 'pino';
import { afterAll, beforeAll } from 'vitest';
import type { z } from 'zod';
import { definition } from '../../src/definition/definition.js';
import { newPet } from '../../src/pets/schema.js';
import { createPetStore } from '../../src/pets/store.js';
import { resources } from '../../src/router.js';

export type TestService = Awaited<ReturnType<typeof startService>>;
export type TestServiceOptions = Partial<StoreOptions>;

/** PUBLIC_URL of the services under test, unless a test overrides it. */
export const PUBLIC_URL = 'https://service.example/store';
export const STAGING_URL = 'https://staging.service.example/store';

/** Many tests are about failures. */
const SILENT = pino({ level: 'silent' });

/** Creates a database of the animals, and resolves with the URL of its owner. */
export const createTestDatabase = (template?: string): Promise<string> =>
  createDatabase(definition, template);

/** What this run has prepared for the animals */
export const findServers = () => readServers(definition);

/** The URL of a database as services use it */
export const asService = (databaseUrl: string): string => asServiceRole(definition, databaseUrl);

/** Starts the animal store. Options replace its parts. */
export async function startService(options: TestServiceOptions = {}) {
  const store = await startStore({
    resources,
    corsOrigins: [],
    publicUrl: PUBLIC_URL,
    stagingUrl: STAGING_URL,
    log: SILENT,
    ...options,
    definition: { ...(options.definition ?? definition), loadPrisma: definition.loadPrisma },
  });
  const pets = createPetStore(store.serviceDatabase);
  /** Takes what a client may send, so that a test spells out only what it needs. */
  const create = async (pet: z.input<typeof newPet>, key?: Parameters<typeof pets.create>[1]) =>
    (await pets.create(newPet.parse(pet), key)).output;
  return { ...store, items: { ...pets, create } };
}

/** A service for all tests of a file, which calls this at its top: it runs by the file's own first hook. */
export function useService(options: TestServiceOptions = {}): { service: TestService; call: Caller } {
  const service = {} as TestService;
  beforeAll(async () => void Object.assign(service, await startService(options)));
  afterAll(() => service.close());
  return { service, call: (path, init) => createCaller(service)(path, init) };
}
