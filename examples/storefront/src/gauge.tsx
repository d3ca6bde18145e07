import type { LimitStatus, LimitWatch } from '@animal-store/client';
import { useSyncExternalStore } from 'react';
import { Ring } from './ring.js';
import { formatClock, secondsUntil, useNow } from './time.js';

const DAY_SECONDS = 86_400;

/** Shows how many requests the key has left in the tighter of its windows, and when that window ends. */
export function Gauge({ limits }: { limits: LimitWatch }) {
  const status = useSyncExternalStore(limits.subscribe, () => limits.current);
  return status === undefined ? <p className="gauge" aria-hidden="true" /> : <Meter status={status} />;
}

function Meter({ status }: { status: LimitStatus }) {
  const now = useNow();
  const { limit, windowSeconds, resetAtMs } = status;
  const isOver = resetAtMs <= now;
  const left = isOver ? limit : status.remaining;
  const span = windowSeconds < DAY_SECONDS ? 'this minute' : 'these 24 hours';
  const share = limit === 0 ? 0 : left / limit;
  return (
    <div className="gauge" data-level={share === 0 ? 'empty' : share < 0.25 ? 'low' : 'good'}>
      <meter
        className="visually-hidden"
        aria-label={`Requests left ${span}`}
        min={0}
        max={limit}
        value={left}
        aria-valuetext={`${format(left)} of ${format(limit)} left`}
      />
      <Ring className="gauge-ring" size={40} radius={17} share={share} />
      <p className="gauge-text">
        <span>
          <strong>{format(left)}</strong>{' '}
          <span className="gauge-limit">
            of {format(limit)} <span className="gauge-unit">requests</span>{' '}
          </span>
          left
        </span>
        <span className="gauge-reset">
          {isOver ? 'a new window' : `resets in ${formatClock(secondsUntil(resetAtMs, now, windowSeconds))}`}
        </span>
      </p>
    </div>
  );
}

function format(count: number): string {
  return count.toLocaleString('en');
}
