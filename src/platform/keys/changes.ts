import { repeat } from '../timing/repeat.js';
import { type KeyChangeStore, MAX_CHANGES } from './change-store.js';

/** How often a process asks which keys have changed. */
const QUESTION_INTERVAL_MS = 500;
/** After this long without an answer, any key may have changed. */
const MAX_GAP_MS = 1_000;
/** In place of a key's id: all have been deleted at once. */
const ALL_KEYS = '00000000-0000-0000-0000-000000000000';
/** Later than every transaction: only what changes from now on is asked for. */
const FROM_NOW_ON = Number.MAX_SAFE_INTEGER;

export interface KeyChanges {
  /**
   * When the last question that was answered was asked, by performance.now(). What had been read before that question
   * still held then, unless it was reported.
   */
  readonly askedAt: number;
  /** How many questions have been answered */
  readonly answers: number;
  /** Adds a listener, which is called with the ids of keys that have changed, or with undefined if any may have. */
  onChange(listener: (ids: ReadonlySet<string> | undefined) => void): void;
}

/**
 * Asks the database twice a second which keys have changed. The cost depends on changes, not on how many keys are in
 * use.
 *
 * The number of a change is that of its transaction, and the next question asks for all from the oldest transaction on
 * that was still running: commits may become visible in any order. While a transaction takes long, the same changes are
 * answered again, and reported once. Where the numbers mean nothing, any key may have changed: in another database (a
 * failover, a restored backup), and after a gap.
 *
 * Changes that no trigger sees (`DISABLE TRIGGER`) are not reported: the authenticator looks keys up again for them.
 */
export function followKeyChanges({ readChanges }: Pick<KeyChangeStore, 'readChanges'>) {
  const listeners: Parameters<KeyChanges['onChange']>[0][] = [];
  const report: (typeof listeners)[number] = (ids) => {
    for (const listener of listeners) listener(ids);
  };
  let source: string | undefined;
  let since = FROM_NOW_ON;
  let seen: ReadonlyMap<string, number> = new Map();
  const feed = {
    askedAt: Number.NEGATIVE_INFINITY,
    answers: 0,
    onChange(listener: typeof report) {
      listeners.push(listener);
    },
    /** Call it before the database is closed. */
    close: () => end(),
  };
  const ask = async () => {
    const now = performance.now();
    const answer = await readChanges(since);
    const changes = new Map(answer.changes.map(({ id, transaction }) => [id, transaction]));
    const isComparable =
      source === answer.source && since <= answer.nextSince && now - feed.askedAt < MAX_GAP_MS;
    const ids = new Set(
      [...changes].filter(([id, transaction]) => seen.get(id) !== transaction).map(([id]) => id),
    );
    if (!isComparable || changes.size > MAX_CHANGES || ids.has(ALL_KEYS)) report(undefined);
    else if (ids.size > 0) report(ids);
    ({ source, nextSince: since } = answer);
    seen = changes;
    feed.askedAt = now;
    feed.answers += 1;
  };
  // While it fails, keys are looked up one by one.
  const tryToAsk = () => ask().catch(() => {});
  const end = repeat(() => QUESTION_INTERVAL_MS, tryToAsk);
  return feed satisfies KeyChanges;
}
