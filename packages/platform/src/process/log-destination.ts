import { Counter } from 'prom-client';
import sonicBoom from 'sonic-boom';

/** How much waits in memory while the destination takes nothing: the lines of some 20,000 requests. Further lines are lost. */
const MAX_WAITING_BYTES = 8 * 1024 * 1024;
/** How often waiting lines are written, and a destination that has failed is tried again */
const FLUSH_INTERVAL_MS = 500;
/** How often a process that ends without `close` tries to write to a pipe that is full, at intervals of 100 ms */
const LAST_ATTEMPTS = 3;

/** Standard output, for lines that no request waits for. */
export interface LogDestination {
  write(line: string): void;
  /** Begins to write the waiting lines. */
  flush(): void;
  /** Writes the waiting lines before the process exits. Never rejects. Kills the process if nothing else would end it. */
  close(withinMs: number): Promise<void>;
  /** For the caller to register; in no registry yet */
  readonly lostLines: Counter;
}

export interface LogDestinationOptions {
  /** How the names of metrics start */
  readonly metricsPrefix: string;
  /** How many bytes are collected before they are written */
  readonly minLength: number;
  /** Called when everything has been written after lines were lost */
  readonly onRecovery: (details: { readonly lost: number; readonly reason: string }) => void;
}

/**
 * Standard output may be on a full file system, a pipe that nobody reads, or a terminal that is gone. Lines then wait up to a
 * bound; beyond it they are dropped and counted. Nothing else suffers. A write that failed is repeated from where it ended.
 */
export function openLogDestination({
  metricsPrefix,
  minLength,
  onRecovery,
}: LogDestinationOptions): LogDestination {
  // Accessing the streams makes pipes non-blocking. Without a listener, a failed write of anything else, such as a warning
  // of Node.js, would end the process.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
  const lostLines = new Counter({
    name: `${metricsPrefix}log_lines_lost_total`,
    help: 'Lines lost because the log could not be written, or not fast enough',
    registers: [],
  });
  let lost = 0;
  let reason = '';
  /** Whether the kernel has answered since the process began to end */
  let hasAnswered = true;
  let isClosed = false;
  const destination = new sonicBoom.SonicBoom({
    fd: 1,
    sync: false,
    minLength,
    maxLength: MAX_WAITING_BYTES,
    maxWrite: 64 * 1024,
    periodicFlush: FLUSH_INTERVAL_MS,
    contentMode: 'buffer',
    retryEAGAIN() {
      hasAnswered = true;
      return true;
    },
  });
  destination.on('drop', () => {
    lost += 1;
    lostLines.inc();
  });
  destination.on('error', ({ message }: Error) => {
    hasAnswered = true;
    reason = message;
    // Otherwise every further line would try to write again.
    Object.assign(destination, { minLength: Number.POSITIVE_INFINITY });
  });
  destination.on('write', () => {
    hasAnswered = true;
    Object.assign(destination, { minLength });
  });
  destination.on('drain', () => {
    const details = { lost, reason: reason || 'it was not read fast enough' };
    [lost, reason] = [0, ''];
    if (details.lost > 0) onRecovery(details);
  });
  process.once('exit', () => {
    if (isClosed) return;
    Object.assign(destination, { maxWriteRetries: LAST_ATTEMPTS });
    try {
      destination.flushSync();
    } catch {
      // Nothing is left to report it to.
    }
  });
  return {
    // With text, the destination would copy all that it holds for each further line. Its types only allow text.
    write: (line) => void destination.write(Buffer.from(line) as never),
    flush: () => destination.flush(),
    async close(withinMs) {
      hasAnswered = false;
      await new Promise<void>((resolve) => {
        setTimeout(resolve, withinMs);
        destination.flush(() => {
          hasAnswered = true;
          resolve();
        });
      });
      isClosed = true;
      // A thread hangs in a write to a stopped terminal, or to a pipe that another process has made blocking. The exit would
      // wait for that thread.
      if (!hasAnswered) process.kill(process.pid, 'SIGKILL');
    },
    lostLines,
  };
}
