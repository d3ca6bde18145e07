import type { Operation } from './document.js';
import { MIN_NOTICE_MONTHS, type Violation } from './rules.js';

/** The violations of an operation that is no longer in the document. */
export function listRemovalViolations(old: Operation, now: number): Violation[] {
  if (!old.deprecated) return [{ rule: 'operation-kept', text: 'it is gone, and was not deprecated' }];
  const removal = old['x-sunset'];
  if (removal === undefined) return [{ rule: 'notice-given', text: 'it is gone, and had no x-sunset' }];
  return now >= Date.parse(removal) ? [] : [{ rule: 'notice-given', text: `it is gone before ${removal}` }];
}

/** The violations of an operation that is or becomes deprecated. Its clients learn so from the release at `now`. */
export function listNoticeViolations(old: Operation, current: Operation, now: number): Violation[] {
  if (!current.deprecated) return [];
  const [since, removal] = readDates(current);
  // It was deprecated without a date before, so there is none to keep.
  const isUndated = old.deprecated === true && readDates(old).some((date) => !date);
  if (!since || !removal) {
    if (isUndated) return [];
    return [{ rule: 'notice-given', text: 'x-deprecated-since and x-sunset must be dates' }];
  }
  if (old.deprecated && !isUndated) {
    const isAdvanced = removal < Date.parse(old['x-sunset'] ?? '');
    const text = `its removal is on ${current['x-sunset']}, was on ${old['x-sunset']}`;
    return isAdvanced ? [{ rule: 'removal-not-advanced', text }] : [];
  }
  const earliest = addMonths(Math.max(since, now), MIN_NOTICE_MONTHS);
  const text = `its removal is on ${current['x-sunset']}, must not be before ${earliest.toISOString()}`;
  return removal < earliest.getTime() ? [{ rule: 'notice-given', text }] : [];
}

function readDates(operation: Operation): [since: number, removal: number] {
  return [Date.parse(operation['x-deprecated-since'] ?? ''), Date.parse(operation['x-sunset'] ?? '')];
}

function addMonths(time: number, months: number): Date {
  const date = new Date(time);
  date.setUTCMonth(date.getUTCMonth() + months);
  return date;
}
