/**
 * Loads something at the first call, for all calls. A failure is forgotten: the next call tries again, so that it lasts no
 * longer than its cause.
 *
 * Node.js keeps a module of ours whose own imports failed. Whoever loads one imports first what may be missing.
 */
export function loadOnce<T>(load: () => Promise<T>): () => Promise<T> {
  let loading: Promise<T> | undefined;
  return () => {
    loading ??= load().catch((error: unknown) => {
      loading = undefined;
      throw error;
    });
    return loading;
  };
}
