import { useEffect, useState } from 'react';

/** The time in Unix milliseconds, read anew every second. */
export function useNow(): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const interval = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(interval);
  }, []);
  return now;
}

/** Whole seconds until then, rounded up, at least 0 and at most what it was in all: `nowMs` may be a moment old. */
export function secondsUntil(thenMs: number, nowMs: number, inAll: number): number {
  return Math.min(inAll, Math.max(0, Math.ceil((thenMs - nowMs) / 1_000)));
}

/** 0:42, 5:00 or 2:05:09 */
export function formatClock(seconds: number): string {
  const parts = [Math.floor(seconds / 60) % 60, seconds % 60];
  const hours = Math.floor(seconds / 3_600);
  const [first = 0, ...rest] = hours > 0 ? [hours, ...parts] : parts;
  return [String(first), ...rest.map((part) => String(part).padStart(2, '0'))].join(':');
}

/** In words, to be said once: 42 seconds, 5 minutes, 2 hours */
export function formatDuration(seconds: number): string {
  if (seconds < 120) return plural(seconds, 'second');
  if (seconds < 7_200) return plural(Math.ceil(seconds / 60), 'minute');
  return plural(Math.ceil(seconds / 3_600), 'hour');
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
