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
  const { since, removal, successor } = deprecation;
  return {
    deprecation: `@${since.getTime() / 1000}`,
    sunset: removal.toUTCString(),
    link: `<${baseUrl}${successor}>; rel="successor-version"`,
  };
}

/** Whether an operation is gone: from the exact instant of its removal. `now` is in Unix milliseconds. */
export function isRemoved({ removal }: Deprecation, now: number): boolean {
  return now >= removal.getTime();
}
