import { channel } from 'node:diagnostics_channel';

/** How long requests may take to finish after a signal. */
export const DRAIN_TIMEOUT_MS = 10_000;
/** The process ends this long after a signal, whatever happens. */
export const FORCE_EXIT_MS = 11_500;

/**
 * Resolves at the first signal, or when the process that started this one over an IPC channel is gone. Later signals are
 * ignored: on Ctrl-C the process gets one from the terminal and another from npm.
 */
export function waitForShutdown(): Promise<string> {
  return new Promise((resolve) => {
    // A terminal that is closed sends SIGHUP.
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, resolve);
    // On SIGUSR1, Node.js would open a debugger by default. Not every version has `--disable-sigusr1`.
    process.on('SIGUSR1', () => {});
    process.on('disconnect', () => resolve('the process that started this one is gone'));
  });
}

/** Published when the last request has been answered: what subscribers hand to `waitFor` is awaited before the end. */
const closeChannel = channel('animal-store.close');

/** Waits for what subscribers of the channel still have to send, such as a tracer its spans. */
export async function closeSubscribers(): Promise<void> {
  const pending: PromiseLike<unknown>[] = [];
  closeChannel.publish({ waitFor: (promise: PromiseLike<unknown>) => pending.push(promise) });
  await Promise.allSettled(pending);
}
