import { formatMoment, useNow } from './time.js';

const SOON_DAYS = 7;
const DAY_MS = 86_400_000;

/**
 * Says when the key expires, if that is soon. The element is there from the start: screen readers often miss a live
 * region that is added with its text.
 */
export function Expiry({ expiresAt }: { expiresAt: string | null }) {
  const leftMs = (expiresAt === null ? Number.POSITIVE_INFINITY : Date.parse(expiresAt)) - useNow();
  // Once it has ended, there is no "in time" any more.
  const isSoon = expiresAt !== null && leftMs > 0 && leftMs < SOON_DAYS * DAY_MS;
  return (
    <p className="expiry" role="status">
      {isSoon && (
        <>
          This key expires on <time dateTime={expiresAt}>{formatMoment(new Date(expiresAt))}</time>. Ask
          whoever issued it for another one in time.
        </>
      )}
    </p>
  );
}
