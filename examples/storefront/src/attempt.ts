import type { Client } from '@animal-store/client';
import { useEffect, useState, useSyncExternalStore } from 'react';
import { useTRPCClient } from './connection.js';
import { describeProblem } from './problem.js';
import { type Failure, useWait } from './save-row.js';
import { useNow } from './time.js';

/**
 * The last failure of a button, for as long as it says something: one that has to wait goes when the wait is over, and one
 * of the connection with the next response. `isBlocked` is whether a further request would only be denied.
 */
export function useAttempt() {
  const [failure, setFailure] = useState<Failure>();
  const { limits } = useTRPCClient() as Client;
  const waitSeconds = useWait(failure);
  const status = useSyncExternalStore(limits.subscribe, () => limits.current);
  const now = useNow();
  const isSpent = status !== undefined && status.remaining === 0 && status.resetAtMs > now;

  useEffect(() => {
    if (failure === undefined) return;
    const { type, waitSeconds: seconds = 0 } = describeProblem(failure.error);
    const clear = () => setFailure(undefined);
    if (type === 'unavailable') return limits.subscribe(clear);
    if (type !== 'rate-limited' && type !== 'banned') return;
    const timer = setTimeout(clear, failure.atMs + seconds * 1_000 - Date.now());
    return () => clearTimeout(timer);
  }, [failure, limits]);

  return { failure, setFailure, waitSeconds, isBlocked: waitSeconds > 0 || isSpent };
}
