import type { PrismaPg } from '@prisma/adapter-pg';
import type { AnyPrisma, Identity, PrismaModule } from '../definition/definition.js';
import { loadOnce } from '../load-once.js';
import { measure } from '../timing/timeouts.js';
import { type ConnectionOptions, type Connections, openConnections } from './connections.js';
import { traceStatement } from './statement-pool.js';

type Observe = NonNullable<ConnectionOptions['observe']>;

/**
 * The connections of a process, and Prisma's client.
 *
 * @template Client the store's client, which Prisma has generated
 */
export interface Database<Client = AnyPrisma> extends Connections {
  /**
   * Prisma's client. The first call loads it, which takes 0.2 s and 39 MB. The service does so before it listens; commands
   * do not.
   */
  readonly loadPrisma: () => Promise<Client>;
  /** From now on, calls the function with the duration of each query and the name of its statement, or `prisma`. */
  observeQueries(observeQuery: Observe): void;
}

/** What the database needs of the definition of a store */
interface OfStore<Client> {
  readonly identity: Pick<Identity, 'name'>;
  readonly loadPrisma: () => Promise<PrismaModule<Client>>;
}

/** Opens the connections of a process, and Prisma's client once it is asked for. */
export function openDatabase<Client>(
  url: string,
  onIdleError: (error: Error) => void,
  { loadPrisma, identity }: OfStore<Client>,
  options: Omit<ConnectionOptions, 'observe' | 'name'> = {},
): Database<Client> {
  let observer: Observe | undefined;
  const observe: Observe = (seconds, statement) => observer?.(seconds, statement);
  const connections = openConnections(url, onIdleError, { ...options, name: identity.name, observe });
  let prisma: GeneratedClient | undefined;
  return {
    ...connections,
    loadPrisma: loadOnce(async (): Promise<Client> => {
      // The types that Prisma generates say nothing that all stores have in common.
      const { PrismaClient } = (await loadPrisma()) as unknown as { readonly PrismaClient: GeneratedClass };
      prisma = await openPrisma(PrismaClient, connections, observe);
      return prisma as Client;
    }),
    observeQueries(observeQuery) {
      observer = observeQuery;
    },
    async close() {
      await prisma?.$disconnect();
      await connections.close();
    },
  };
}

async function openPrisma(
  PrismaClient: GeneratedClass,
  { pool, schema }: Connections,
  observe: Observe,
): Promise<GeneratedClient> {
  const { PrismaPg } = await import('@prisma/adapter-pg');
  const client = new PrismaClient({ adapter: new PrismaPg(pool, { schema }), errorFormat: 'minimal' });
  // Otherwise the first query would load the query compiler.
  await client.$connect();
  const observePrisma = (seconds: number) => observe(seconds, 'prisma');
  return client.$extends({
    query: {
      $allOperations: ({ args, query, model, operation }) =>
        measure(observePrisma, () =>
          traceStatement(() => query(args), model === undefined ? operation : `${model}.${operation}`),
        ),
    },
  });
}

type GeneratedClass = new (options: {
  readonly adapter: PrismaPg;
  readonly errorFormat: 'minimal';
}) => GeneratedClient;

interface GeneratedClient {
  $connect(): Promise<void>;
  $disconnect(): Promise<void>;
  /** The extended client has the same methods. */
  $extends(extension: {
    readonly query: { readonly $allOperations: (call: PrismaCall) => Promise<unknown> };
  }): GeneratedClient;
}

/** What Prisma hands to an extension for each call */
interface PrismaCall {
  readonly args: unknown;
  readonly query: (args: unknown) => Promise<unknown>;
  readonly model?: string;
  readonly operation: string;
}
