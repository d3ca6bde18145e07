/** An operation's farewell: from when on it should not be used, and from when on it is gone. */
export interface Deprecation {
  readonly since: Date;
  readonly removal: Date;
  /** What to call instead, relative to the version: /pets */
  readonly successor: string;
}

/**
 * The headers of every answer of a deprecated operation until its removal: Deprecation (RFC 9745), Sunset (RFC 8594) and
 * a Link to the successor (RFC 5829). None from the removal on.
 *
 * @param baseUrl the address that the successor's path belongs to, without a trailing slash
 * @param now Unix milliseconds
 */
export function deprecationHeaders(
  deprecation: Deprecation | undefined,
  baseUrl: string,
  now: number,
): Record<string, string> {
  if (deprecation === undefined || isRemoved(deprecation, now)) return {};
  const { since, removal, successor } = deprecation;
  return {
    deprecation: `@${since.getTime() / 1000}`,
    sunset: removal.toUTCString(),
    link: `<${baseUrl}${successor}>; rel="successor-version"`,
  };
}

/** Whether an operation is gone at a moment, in Unix milliseconds: from the very instant of its removal. */
export function isRemoved({ removal }: Deprecation, now: number): boolean {
  return now >= removal.getTime();
}
