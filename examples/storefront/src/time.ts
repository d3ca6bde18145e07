import { useEffect, useState } from 'react';

/** The current time in Unix milliseconds, updated every second. */
export function useNow(): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const interval = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(interval);
  }, []);
  return now;
}

/** Whole seconds left, rounded up, from 0 to `maxSeconds`: `nowMs` may be up to a second old. */
export function secondsUntil(thenMs: number, nowMs: number, maxSeconds: number): number {
  return Math.min(maxSeconds, Math.max(0, Math.ceil((thenMs - nowMs) / 1_000)));
}

/** 0:42, 5:00 or 2:05:09 */
export function formatClock(seconds: number): string {
  const parts = [Math.floor(seconds / 60) % 60, seconds % 60];
  const hours = Math.floor(seconds / 3_600);
  const [first = 0, ...rest] = hours > 0 ? [hours, ...parts] : parts;
  return [String(first), ...rest.map((part) => String(part).padStart(2, '0'))].join(':');
}

/** For announcements: 42 seconds, 5 minutes, 2 hours */
export function formatDuration(seconds: number): string {
  if (seconds < 120) return plural(seconds, 'second');
  if (seconds < 7_200) return plural(Math.ceil(seconds / 60), 'minute');
  return plural(Math.ceil(seconds / 3_600), 'hour');
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** Monday, 3 August, 14:05, in the visitor's time zone */
export function formatMoment(time: Date): string {
  return time.toLocaleString('en-GB', {
    weekday: 'long',
    day: 'numeric',
    month: 'long',
    hour: '2-digit',
    minute: '2-digit',
  });
}
