/* Aborting on every platform: React Native has neither DOMException nor the reason of a signal. */

/** An error as platforms create it: AbortError or TimeoutError. */
export function createAbortError(name: 'AbortError' | 'TimeoutError', message: string): Error {
  return typeof DOMException === 'undefined'
    ? Object.assign(new Error(message), { name })
    : new DOMException(message, name);
}

/** Why a signal was aborted. */
export function readReason(signal: AbortSignal): unknown {
  return signal.reason ?? createAbortError('AbortError', 'The call was aborted');
}

const listeners = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Calls a function when the signal is aborted, or at once if it already is. The returned function cancels this.
 *
 * However many calls share a signal, it gets one listener, because from eleven on Node.js warns of a leak.
 */
export function onAbort(signal: AbortSignal, listener: () => void): () => void {
  if (signal.aborted) listener();
  let all = listeners.get(signal);
  if (all === undefined) {
    const added = new Set<() => void>();
    signal.addEventListener('abort', () => {
      for (const call of added) call();
    });
    listeners.set(signal, added);
    all = added;
  }
  all.add(listener);
  return () => all.delete(listener);
}
