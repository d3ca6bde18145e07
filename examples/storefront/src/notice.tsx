import { useEffect, useEffectEvent } from 'react';
import { useAnnounce } from './announcer.js';
import { Picture } from './illustration.js';
import { moveFocusOnRemoval } from './move-focus.js';
import { describeProblem, type Problem } from './problem.js';
import { Ring } from './ring.js';
import { formatClock, formatDuration, secondsUntil, useNow } from './time.js';
import type { Kind } from './vocabulary.js';

const PICTURES = {
  'unknown-key': 'paw',
  forbidden: 'rabbit',
  'rate-limited': 'tortoise',
  banned: 'cat',
  unavailable: 'bird',
  error: 'paw',
} as const satisfies Record<Problem['type'], Kind>;

export interface NoticeProps {
  readonly error: unknown;
  /** When the error occurred, in Unix milliseconds */
  readonly since: number;
  readonly isRetrying: boolean;
  /** Called by the button, and automatically when the wait is over. */
  readonly onRetry: () => void;
}

/** Explains why the catalogue could not be loaded, and retries when that makes sense. */
export function Notice({ error, since, isRetrying, onRetry }: NoticeProps) {
  const { type, title, text, waitSeconds } = describeProblem(error);
  const until = waitSeconds === undefined ? undefined : since + waitSeconds * 1_000;
  const announce = useAnnounce();
  const retry = useEffectEvent(onRetry);

  useEffect(() => {
    const wait = waitSeconds === undefined ? '' : ` It goes on by itself in ${formatDuration(waitSeconds)}.`;
    announce(`${title}. ${text}${wait}`);
  }, [announce, title, text, waitSeconds]);

  useEffect(() => {
    if (until === undefined) return;
    const timeout = setTimeout(() => retry(), until - Date.now());
    return () => clearTimeout(timeout);
  }, [until]);

  return (
    <section className="notice" data-problem={type} aria-label={title}>
      <div className="plate notice-plate" data-kind={PICTURES[type]}>
        <Picture kind={PICTURES[type]} seed={1} isWide />
      </div>
      <CountdownRing since={since} until={until} />
      <div className="notice-text">
        <p className="notice-title">{title}</p>
        <p>{text}</p>
        <p className="notice-wait">
          {isRetrying
            ? 'Trying again…'
            : waitSeconds !== undefined && <Wait since={since} seconds={waitSeconds} />}
        </p>
      </div>
      {/* No button during a rate limit or a ban: every further request counts towards a ban. */}
      {(type === 'unavailable' || type === 'error') && (
        <button
          ref={moveFocusOnRemoval}
          type="button"
          className="button quiet"
          onClick={() => isRetrying || onRetry()}
          aria-disabled={isRetrying}
        >
          Try now
        </button>
      )}
    </section>
  );
}

/** The time left. Screen readers have announced it once; an announcement every second would be noise. */
function Wait({ since, seconds }: { since: number; seconds: number }) {
  const left = secondsUntil(since + seconds * 1_000, useNow(), seconds);
  return (
    <>
      Goes on by itself in{' '}
      <span className="countdown" role="timer">
        {formatClock(left)}
      </span>
    </>
  );
}

/** A clock with a ring that empties during the wait. */
function CountdownRing({ since, until }: { since: number; until: number | undefined }) {
  const now = useNow();
  const left = until === undefined ? 1 : Math.max(0, Math.min(1, (until - now) / (until - since)));
  return (
    <Ring className="countdown-ring" size={48} radius={20} share={left}>
      <path className="hands" d={until === undefined ? 'M24 15 V26 M24 32 V32.5' : 'M24 14 V24 L30 28'} />
    </Ring>
  );
}
