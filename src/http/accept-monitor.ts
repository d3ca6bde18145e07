import type { Server } from 'node:net';
import { performance } from 'node:perf_hooks';

/** The share of ticks with a new connection, and of time that was busy, from which connections must be waiting. */
const MIN_SHARE = 0.9;

export interface AcceptMonitor {
  /** Whether new connections were waiting to be accepted for all of the time since the last call. */
  hasBacklog(): boolean;
}

/**
 * Monitors how a server keeps up with new connections. The operating system queues them without telling, but Node.js
 * accepts one per tick of the event loop: when every tick accepts one, and the loop never waits for the next, more of
 * them are waiting.
 */
export function monitorAccepts(server: Server): AcceptMonitor {
  let accepted = 0;
  let lastTicks = 0;
  let lastUtilization = performance.eventLoopUtilization();
  server.on('connection', () => {
    accepted += 1;
  });
  return {
    hasBacklog() {
      const { loopCount } = performance.nodeTiming.uvMetricsInfo;
      const current = performance.eventLoopUtilization();
      const { utilization } = performance.eventLoopUtilization(current, lastUtilization);
      const ticks = loopCount - lastTicks;
      const isStarved = accepted > 0 && accepted >= ticks * MIN_SHARE && utilization >= MIN_SHARE;
      accepted = 0;
      lastTicks = loopCount;
      lastUtilization = current;
      return isStarved;
    },
  };
}
