import type { Server } from 'node:net';
import { performance } from 'node:perf_hooks';

/** Connections are waiting when this share of ticks accepted one, and the loop was busy for this share of the time. */
const MIN_SHARE = 0.9;

export interface AcceptMonitor {
  /** How many connections were accepted since the start */
  readonly accepted: number;
  /** How many of them are open */
  readonly connections: number;
  /** Whether new connections have been waiting to be accepted ever since the last call. */
  hasBacklog(): boolean;
}

/**
 * Monitors whether a server keeps up with new connections. The operating system queues them and does not say how many,
 * but Node.js accepts one per tick of the event loop: when every tick accepts one and the loop is never idle, more are
 * waiting.
 */
export function monitorAccepts(server: Server): AcceptMonitor {
  let accepted = 0;
  let connections = 0;
  let lastAccepted = 0;
  let lastTicks = 0;
  let lastUtilization = performance.eventLoopUtilization();
  server.on('connection', (socket) => {
    accepted += 1;
    connections += 1;
    socket.once('close', () => {
      connections -= 1;
    });
  });
  return {
    get accepted() {
      return accepted;
    },
    get connections() {
      return connections;
    },
    hasBacklog() {
      const { loopCount } = performance.nodeTiming.uvMetricsInfo;
      const current = performance.eventLoopUtilization();
      const { utilization } = performance.eventLoopUtilization(current, lastUtilization);
      const ticks = loopCount - lastTicks;
      const accepts = accepted - lastAccepted;
      const isStarved = accepts > 0 && accepts >= ticks * MIN_SHARE && utilization >= MIN_SHARE;
      lastAccepted = accepted;
      lastTicks = loopCount;
      lastUtilization = current;
      return isStarved;
    },
  };
}
