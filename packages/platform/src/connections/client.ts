import type { PrismaClient } from '@animal-store/definition/prisma';
import { loadOnce } from '../load-once.js';
import { measure } from '../timing/timeouts.js';
import { type ConnectionOptions, type Connections, openConnections } from './connections.js';
import { traceStatement } from './statement-pool.js';

type Observe = NonNullable<ConnectionOptions['observe']>;

export type Database = Readonly<ReturnType<typeof openDatabase>>;

/** Opens the connections of a process, and Prisma's client once it is asked for. */
export function openDatabase(
  url: string,
  onIdleError: (error: Error) => void,
  options: Omit<ConnectionOptions, 'observe'> = {},
) {
  let observer: Observe | undefined;
  const observe: Observe = (seconds, statement) => observer?.(seconds, statement);
  const connections = openConnections(url, onIdleError, { ...options, observe });
  let prisma: PrismaClient | undefined;
  return {
    ...connections,
    /**
     * Prisma's client. The first call loads it, which takes 0.2 s and 39 MB. The service does so before it listens; commands
     * do not.
     */
    loadPrisma: loadOnce(async () => {
      prisma = await openPrisma(connections, observe);
      return prisma;
    }),
    /** From now on, calls the function with the duration of each query and the name of its statement, or `prisma`. */
    observeQueries(observeQuery: Observe): void {
      observer = observeQuery;
    },
    async close() {
      await prisma?.$disconnect();
      await connections.close();
    },
  };
}

async function openPrisma({ pool, schema }: Connections, observe: Observe): Promise<PrismaClient> {
  const { PrismaPg } = await import('@prisma/adapter-pg');
  const { PrismaClient } = await import('@animal-store/definition/prisma');
  const client = new PrismaClient({ adapter: new PrismaPg(pool, { schema }), errorFormat: 'minimal' });
  // Otherwise the first query would load the query compiler.
  await client.$connect();
  const observePrisma = (seconds: number) => observe(seconds, 'prisma');
  const timed = client.$extends({
    query: {
      $allOperations: ({ args, query, model, operation }) =>
        measure(observePrisma, () =>
          traceStatement(() => query(args), model === undefined ? operation : `${model}.${operation}`),
        ),
    },
  });
  // The extended client has the same methods, but TypeScript takes it for another type.
  return timed as unknown as PrismaClient;
}
