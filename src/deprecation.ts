/** How long a stable operation stays, at least, after its deprecation was announced. */
export const MIN_NOTICE_MONTHS = 12;

/** When an operation was deprecated, when it is removed, and what replaces it. */
export interface Deprecation {
  readonly since: Date;
  readonly removal: Date;
  /** A path relative to the version, such as /pets */
  readonly successor: string;
}

/**
 * The headers of every response of a deprecated operation: Deprecation (RFC 9745), Sunset (RFC 8594) and a Link to the
 * successor (RFC 5829). None once the operation is removed.
 *
 * @param baseUrl the address that the successor's path is relative to, without a trailing slash
 * @param now Unix milliseconds
 */
export function deprecationHeaders(
  deprecation: Deprecation,
  baseUrl: string,
  now: number,
): Record<string, string> {
  if (isRemoved(deprecation, now)) return {};
  const { since, sunset } = formatDates(deprecation);
  return {
    deprecation: since,
    sunset,
    link: `<${baseUrl}${deprecation.successor}>; rel="successor-version"`,
  };
}

interface FormattedDates {
  readonly since: string;
  readonly sunset: string;
}

/** Formatted once per deprecation, because each response of the operation has them. */
const knownDates = new WeakMap<Deprecation, FormattedDates>();

function formatDates(deprecation: Deprecation): FormattedDates {
  const known = knownDates.get(deprecation);
  if (known !== undefined) return known;
  const { since, removal } = deprecation;
  const dates = { since: `@${since.getTime() / 1000}`, sunset: removal.toUTCString() };
  knownDates.set(deprecation, dates);
  return dates;
}

/** Whether an operation is gone: from the exact instant of its removal. `now` is in Unix milliseconds. */
export function isRemoved({ removal }: Deprecation, now: number): boolean {
  return now >= removal.getTime();
}
