/**
 * Runs a task now, and again whenever `intervalMs` have passed since a run, which must not reject. Returns a function that
 * ends that and waits for the run in progress.
 */
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
