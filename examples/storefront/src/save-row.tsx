import { useEffect } from 'react';
import { useAnnounce } from './announcer.js';
import { describeProblem } from './problem.js';
import { formatClock, formatDuration, secondsUntil, useNow } from './time.js';

export interface Failure {
  readonly error: unknown;
  /** Unix milliseconds */
  readonly atMs: number;
}

export interface SaveRowProps {
  readonly failure: Failure | undefined;
  /** The name of the animal that was saved last, whose card may be hidden by the filter or below the fold */
  readonly savedName: string | undefined;
  /** Called when its confirmation has faded. */
  readonly onSavedShown: () => void;
  readonly isSaving: boolean;
  /** Whether the service responds again after a save that did not reach it */
  readonly isBack: boolean;
  readonly waitSeconds: number;
}

const BACK = 'The store can be reached again.';
const ONCE = 'What you filled in is kept, and saving it again stores it only once.';

/** Seconds for which saving is disabled, because a further request would count towards a ban. */
export function useWait(failure: Failure | undefined): number {
  const now = useNow();
  if (failure === undefined) return 0;
  const { type, waitSeconds = 0 } = describeProblem(failure.error);
  const mustWait = type === 'rate-limited' || type === 'banned';
  return mustWait ? secondsUntil(failure.atMs + waitSeconds * 1_000, now, waitSeconds) : 0;
}

/** The save button, and whether the animal was saved. The form does not retry; the user decides when to. */
export function SaveRow({ failure, savedName, onSavedShown, isSaving, isBack, waitSeconds }: SaveRowProps) {
  const label = isBack ? 'Save again' : 'Save animal';
  return (
    <div className="save-row">
      <button type="submit" className="button" aria-disabled={isSaving || waitSeconds > 0}>
        {isSaving ? 'Saving…' : waitSeconds > 0 ? `Save again in ${formatClock(waitSeconds)}` : label}
      </button>
      {failure !== undefined && (isBack ? <Back /> : <Reason error={failure.error} />)}
      {savedName !== undefined && (
        <p className="form-notice" data-state="saved" onAnimationEnd={onSavedShown}>
          <bdi>{savedName}</bdi> is in the catalogue.
        </p>
      )}
    </div>
  );
}

/** Offers to repeat the save that did not reach the service. */
function Back() {
  const announce = useAnnounce();
  useEffect(() => announce(`${BACK} ${ONCE}`), [announce]);
  return (
    <p className="form-notice" data-state="back">
      <strong>{BACK}</strong> {ONCE}
    </p>
  );
}

function Reason({ error }: { error: unknown }) {
  const { title, text, waitSeconds } = describeProblem(error);
  const announce = useAnnounce();

  useEffect(() => {
    const wait = waitSeconds === undefined ? '' : ` Try again in ${formatDuration(waitSeconds)}.`;
    announce(`Not saved. ${title}. ${text}${wait}`);
  }, [announce, title, text, waitSeconds]);

  return (
    <p className="form-notice" data-state="failed">
      <strong>Not saved. {title}.</strong> {text} What you filled in is kept.
    </p>
  );
}
