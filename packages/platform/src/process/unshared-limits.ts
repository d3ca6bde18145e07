import cluster from 'node:cluster';

/**
 * A line for the operator when other processes serve the same callers, and each of them counts limits for itself. PM2
 * numbers the instances of a program; the first, 0, may be the only one.
 *
 * @param isClusterWorker whether this process was forked by node:cluster, as PM2's cluster mode also does
 */
export function describeUnsharedLimits(
  redisUrls: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
  isClusterWorker = cluster.isWorker,
): string | undefined {
  const isOneOfSeveral = isClusterWorker || Number(environment.NODE_APP_INSTANCE) > 0;
  if (redisUrls.length > 0 || !isOneOfSeveral) return undefined;
  return 'this is one of several processes, and each counts limits for itself, so a key has its limits once per process. Set REDIS_URL to share them';
}
