import { useEffect, useEffectEvent, useRef, useState } from 'react';
import { moveFocusOnRemoval } from './move-focus.js';

/** The latest error until the query succeeds; while the query is retried, it has no error itself. */
export function useLastError({ error, isSuccess }: { error: unknown; isSuccess: boolean }): unknown {
  const [lastError, setLastError] = useState<unknown>(null);
  if (error !== null && error !== lastError) setLastError(error);
  else if (isSuccess && lastError !== null) setLastError(null);
  return error ?? lastError;
}

interface LoadMoreProps {
  /** How many pages are shown; the end is observed again after each */
  readonly pages: number;
  readonly isLoading: boolean;
  readonly onLoad: () => void;
}

/** Marks the end of what is loaded. Scrolling near it loads the next page, and so does its button. */
export function LoadMore({ pages, isLoading, onLoad }: LoadMoreProps) {
  const end = useRef<HTMLDivElement>(null);
  const load = () => {
    if (!isLoading) onLoad();
  };
  const loadOnScroll = useEffectEvent(load);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only a new observer reports an end that is still in view
  useEffect(() => {
    if (end.current === null) return;
    const observer = new IntersectionObserver(
      (entries) => entries.some((entry) => entry.isIntersecting) && loadOnScroll(),
      {
        rootMargin: '600px',
      },
    );
    observer.observe(end.current);
    return () => observer.disconnect();
  }, [pages]);
  return (
    <div ref={end} className="load-more">
      <button
        ref={moveFocusOnRemoval}
        type="button"
        className="button quiet"
        onClick={load}
        aria-disabled={isLoading}
      >
        {isLoading ? 'Loading more…' : 'Load more'}
      </button>
    </div>
  );
}
