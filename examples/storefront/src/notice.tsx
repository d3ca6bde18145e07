import { useEffect, useEffectEvent } from 'react';
import { useAnnounce } from './announcer.js';
import { formatClock, formatDuration, secondsUntil, useNow } from './clock.js';
import { handOnFocus } from './hand-on-focus.js';
import { Picture } from './illustration.js';
import { describeTrouble, type Trouble } from './trouble.js';
import type { Kind } from './vocabulary.js';

/** Who keeps the reader company while there is nothing else to see */
const COMPANY = {
  key: 'paw',
  refused: 'tortoise',
  banned: 'cat',
  away: 'bird',
  fault: 'paw',
} as const satisfies Record<Trouble['kind'], Kind>;

export interface NoticeProps {
  readonly error: unknown;
  /** When it happened, in Unix milliseconds */
  readonly since: number;
  readonly isRetrying: boolean;
  /** Tries again; called by itself when the wait is over. */
  readonly onRetry: () => void;
}

/** Says what went wrong while reading, and goes on by itself as soon as that makes sense. */
export function Notice({ error, since, isRetrying, onRetry }: NoticeProps) {
  const { kind, title, text, waitSeconds } = describeTrouble(error);
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
    <section className="notice" data-kind={kind} aria-label={title}>
      <div className="plate notice-plate" data-kind={COMPANY[kind]}>
        <Picture kind={COMPANY[kind]} seed={1} isWide />
      </div>
      <Clockface since={since} until={until} />
      <div className="notice-words">
        <p className="notice-title">{title}</p>
        <p>{text}</p>
        <p className="notice-wait">
          {isRetrying
            ? 'Trying again…'
            : waitSeconds !== undefined && <Wait since={since} seconds={waitSeconds} />}
        </p>
      </div>
      {/* Who is told to wait is not offered a button: each further request counts towards a ban. */}
      {(kind === 'away' || kind === 'fault') && (
        <button
          ref={handOnFocus}
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

/** The time left, for the eye only: told once in words, it would be noise every second. */
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

const ROUND = 2 * Math.PI * 20;

/** A clock whose ring empties until the wait is over. */
function Clockface({ since, until }: { since: number; until: number | undefined }) {
  const now = useNow();
  const left = until === undefined ? 1 : Math.max(0, Math.min(1, (until - now) / (until - since)));
  return (
    <svg className="clockface" viewBox="0 0 48 48" aria-hidden="true">
      <circle className="track" cx="24" cy="24" r="20" />
      <circle
        className="arc"
        cx="24"
        cy="24"
        r="20"
        strokeDasharray={ROUND}
        strokeDashoffset={ROUND * (1 - left)}
        transform="rotate(-90 24 24)"
      />
      <path className="hands" d={until === undefined ? 'M24 15 V26 M24 32 V32.5' : 'M24 14 V24 L30 28'} />
    </svg>
  );
}
