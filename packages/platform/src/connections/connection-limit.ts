import { readParameter } from './schema-name.js';

/**
 * How many connections each pool of a process has, and the proportion in which another number is divided among them.
 *
 * Statements that wait for a locked row, and Prisma's writes, can occupy every connection of their pool. Of four for reads, one table
 * may use two, because it may be locked, other tables share one, and readiness has one. Of three for writes, two are for creates of two tables,
 * and one is for changes. Lookups of keys have a pool of their own, so that neither a locked table nor a flood of unknown keys
 * delays others.
 */
const SIZES = { prisma: 3, reads: 4, writes: 3, keys: 2 } as const;

type PoolName = keyof typeof SIZES;

export const LIMIT_PARAMETER = 'connection_limit';
export const MOST_CONNECTIONS = Object.values(SIZES).reduce<number>((total, size) => total + size, 0);
/** One for each pool. While commits hang, each pool also opens one more for a moment. */
export const LEAST_CONNECTIONS = Object.keys(SIZES).length;

/** The sizes of the pools for a URL: its `connection_limit`, which Prisma calls so, is the sum of them. */
export function divideConnections(url: string): Record<PoolName, number> {
  const limit = readParameter(url, LIMIT_PARAMETER);
  if (limit === null) return SIZES;
  const sizes = { prisma: 1, reads: 1, writes: 1, keys: 1 };
  const names = Object.keys(SIZES) as PoolName[];
  const share = (name: PoolName) => sizes[name] / SIZES[name];
  for (let left = Number(limit) - names.length; left > 0; left -= 1) {
    const least = names.reduce((a, b) => (share(b) < share(a) ? b : a));
    sizes[least] += 1;
  }
  return sizes;
}
