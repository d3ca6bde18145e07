const SOON_DAYS = 7;
const DAY_MS = 86_400_000;

/**
 * Says when the key expires, if that is soon. The element is there from the start: screen readers often miss a live
 * region that is added with its text.
 */
export function Expiry({ expiresAt }: { expiresAt: string | null }) {
  const isSoon = expiresAt !== null && Date.parse(expiresAt) - Date.now() < SOON_DAYS * DAY_MS;
  return (
    <p className="expiry" role="status">
      {isSoon && (
        <>
          This key expires on <time dateTime={expiresAt}>{formatTime(new Date(expiresAt))}</time>. Ask whoever
          issued it for another one in time.
        </>
      )}
    </p>
  );
}

/** Monday, 3 August, 14:05, in the visitor's time zone */
function formatTime(time: Date): string {
  return time.toLocaleString('en-GB', {
    weekday: 'long',
    day: 'numeric',
    month: 'long',
    hour: '2-digit',
    minute: '2-digit',
  });
}
