import { ApiError } from './errors/api-error.js';

/**
 * Loads something at the first call, for all calls. After a failure the next call tries again, so that the failure lasts no
 * longer than its cause.
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

/**
 * The same for code that requests need. Whatever keeps it from being loaded, such as an installation that is being
 * replaced, is no failure of the database: a caller may try again, and the log has the cause.
 *
 * Node.js remembers a module that it could not read, or whose own imports failed, until the process ends. So import the
 * packages that may be missing before a module of ours that imports them. All versions except 22 also remember a package
 * that was missing. Then only a restart helps, as the log says when the probe fails.
 *
 * @throws ApiError service_unavailable
 */
export function loadCode<T>(load: () => Promise<T>): () => Promise<T> {
  return loadOnce(() =>
    load().catch((cause: unknown) => {
      const message = 'A part of the service cannot be loaded now. Try again shortly.';
      throw new ApiError('service_unavailable', { message, cause });
    }),
  );
}
