/** Runs a task, which must not reject, now and `intervalMs` after each run. Returns what ends it, after the last run. */
export function repeat(intervalMs: number, run: () => Promise<void>): () => Promise<void> {
  let isEnded = false;
  let timer: NodeJS.Timeout | undefined;
  const start = async (): Promise<void> => {
    await run();
    if (!isEnded) timer = setTimeout(() => (running = start()), intervalMs).unref();
  };
  let running = start();
  return async () => {
    isEnded = true;
    clearTimeout(timer);
    await running;
  };
}
