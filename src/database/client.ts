import { PrismaPg } from '@prisma/adapter-pg';
import { createDurations } from '../batching/durations.js';
import { measure } from '../batching/timeouts.js';
import { openConnections } from './connections.js';
import { PrismaClient } from './generated/client.js';

export type Database = Readonly<ReturnType<typeof openDatabase>>;

/** Opens connections, and Prisma's client on their pool. The parameters are those of openConnections. */
export function openDatabase(url: string, onIdleError: (error: Error) => void) {
  const queryDurations = createDurations(
    'animal_store_database_query_duration_seconds',
    'How long queries took, including failed ones; one statement may serve several requests',
    ['statement'],
  );
  const observe = (seconds: number, statement: string) => queryDurations.observe({ statement }, seconds);
  const connections = openConnections(url, onIdleError, { observe });
  const client = new PrismaClient({ adapter: new PrismaPg(connections.pool), errorFormat: 'minimal' });
  const observePrisma = (seconds: number) => observe(seconds, 'prisma');
  const prisma = client.$extends({
    query: { $allOperations: ({ args, query }) => measure(observePrisma, () => query(args)) },
  });
  return {
    ...connections,
    // It has the client's methods, but TypeScript takes it for another type.
    prisma: prisma as unknown as PrismaClient,
    /** What queries took, by `statement`: its name, or `prisma` for all of Prisma's */
    queryDurations,
    async close() {
      await prisma.$disconnect();
      await connections.close();
    },
  };
}
