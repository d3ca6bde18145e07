import { useEffect } from 'react';
import { useAnnounce } from './announcer.js';
import { formatClock, formatDuration, secondsUntil, useNow } from './clock.js';
import { describeTrouble } from './trouble.js';

export interface Failure {
  readonly error: unknown;
  /** Unix milliseconds */
  readonly atMs: number;
}

export interface SaveRowProps {
  readonly failure: Failure | undefined;
  /** Of the animal that was saved last: a filter or a narrow page may hide its card. */
  readonly savedName: string | undefined;
  readonly isSaving: boolean;
  readonly waitSeconds: number;
}

/** Seconds for which nothing should be sent, because a further request would count towards a ban. */
export function useWait(failure: Failure | undefined): number {
  const now = useNow();
  if (failure === undefined) return 0;
  const { kind, waitSeconds = 0 } = describeTrouble(failure.error);
  const mustWait = kind === 'refused' || kind === 'banned';
  return mustWait ? secondsUntil(failure.atMs + waitSeconds * 1_000, now, waitSeconds) : 0;
}

/** The button that saves, and above it what became of the animal. When to try again is left to who filled it in. */
export function SaveRow({ failure, savedName, isSaving, waitSeconds }: SaveRowProps) {
  const label = waitSeconds > 0 ? `Save again in ${formatClock(waitSeconds)}` : 'Save animal';
  return (
    <>
      {failure !== undefined && <Reason error={failure.error} />}
      {savedName !== undefined && (
        <p className="form-notice" data-kind="saved">
          <bdi>{savedName}</bdi> is in the catalogue.
        </p>
      )}
      <button type="submit" className="button" aria-disabled={isSaving || waitSeconds > 0}>
        {isSaving ? 'Saving…' : label}
      </button>
    </>
  );
}

function Reason({ error }: { error: unknown }) {
  const { kind, title, text, waitSeconds } = describeTrouble(error);
  const announce = useAnnounce();

  useEffect(() => {
    const wait = waitSeconds === undefined ? '' : ` Try again in ${formatDuration(waitSeconds)}.`;
    announce(`Not saved. ${title}. ${text}${wait}`);
  }, [announce, title, text, waitSeconds]);

  return (
    <p className="form-notice" data-kind={kind}>
      <strong>Not saved. {title}.</strong> {text} What you filled in is kept.
    </p>
  );
}
