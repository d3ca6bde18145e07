/**
 * Runs a task now, and after each run again when `untilNextMs` have passed. The task must not reject. Returns a function
 * that stops it and waits for the run in progress.
 */
export function repeat(untilNextMs: () => number, run: () => Promise<void>): () => Promise<void> {
  let isEnded = false;
  let timer: NodeJS.Timeout | undefined;
  const start = async (): Promise<void> => {
    await run();
    if (!isEnded) timer = setTimeout(() => (running = start()), untilNextMs()).unref();
  };
  let running = start();
  return async () => {
    isEnded = true;
    clearTimeout(timer);
    await running;
  };
}
