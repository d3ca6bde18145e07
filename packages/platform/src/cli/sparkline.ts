import { DAY_MS, type DayRange, SHOWN_DAYS, toDay, type Usage } from '../usage/store.js';

/** The first stands for a day without requests, the last for the day with the most. */
const LEVELS = '▁▂▃▄▅▆▇█';

/** The requests of a day, admitted and denied. A day may come several times. */
export type DayCount = readonly [day: string, count: number];

export function toDayCounts(rows: readonly Usage[]): DayCount[] {
  return rows.map(({ day, requests, denied }) => [day, requests + denied]);
}

/** A character for each day of a range, the newest last, or for its last SHOWN_DAYS if it has more. */
export function formatSparkline(counts: readonly DayCount[], { from, to }: DayRange): string {
  const totals = new Map<string, number>();
  for (let age = SHOWN_DAYS - 1; age >= 0; age -= 1) {
    const day = toDay(Date.parse(to) - age * DAY_MS);
    if (day >= from) totals.set(day, 0);
  }
  for (const [day, count] of counts) {
    const total = totals.get(day);
    if (total !== undefined) totals.set(day, total + count);
  }
  const most = Math.max(1, ...totals.values());
  return Array.from(totals.values(), (total) => LEVELS[Math.ceil((total / most) * (LEVELS.length - 1))]).join(
    '',
  );
}
