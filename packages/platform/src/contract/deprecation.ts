import { REST_PREFIX } from './protocol.js';

/** What the reference page says of deprecations: a section of docs/guides/compatibility.md. */
const POLICY_PATH = '/docs#description/how-an-operation-is-removed';

/** The least time that a stable operation stays after its deprecation was announced. */
export const MIN_NOTICE_MONTHS = 12;

/** When an operation was deprecated, when it is removed, and what replaces it. */
export interface Deprecation {
  readonly since: Date;
  readonly removal: Date;
  /** A path relative to the version, such as /pets */
  readonly successor: string;
}

/**
 * The headers of every response of a deprecated operation: Deprecation (RFC 9745), Sunset (RFC 8594), and Links to the
 * successor (RFC 5829) and, with the relations `deprecation` and `sunset`, to the documentation. None once the operation
 * is removed.
 *
 * @param publicUrl the address that clients use, without a trailing slash
 * @param now Unix milliseconds
 */
export function deprecationHeaders(
  deprecation: Deprecation,
  publicUrl: string,
  now: number,
): Record<string, string> {
  if (isRemoved(deprecation, now)) return {};
  const { since, removal, successor } = deprecation;
  const policy = `<${publicUrl}${POLICY_PATH}>`;
  return {
    deprecation: `@${since.getTime() / 1000}`,
    sunset: removal.toUTCString(),
    link:
      `<${publicUrl}${REST_PREFIX}${successor}>; rel="successor-version", ` +
      `${policy}; rel="deprecation"; type="text/html", ${policy}; rel="sunset"; type="text/html"`,
  };
}

/** Whether an operation is gone: from the exact instant of its removal. `now` is in Unix milliseconds. */
export function isRemoved({ removal }: Deprecation, now: number): boolean {
  return now >= removal.getTime();
}

interface MaybeDeprecated {
  readonly name: string;
  readonly deprecation?: Deprecation | undefined;
}

/** The names of the deprecated operations. */
export function listDeprecated(operations: readonly MaybeDeprecated[]): ReadonlySet<string> {
  return new Set(operations.filter(({ deprecation }) => deprecation !== undefined).map(({ name }) => name));
}
