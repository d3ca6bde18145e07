import type { oas31 } from 'zod-openapi';
import { EXPIRY_NOTICE_DAYS } from '../contract/bounds.js';
import { fallbackLimits } from '../contract/plans.js';
import { NEXT_CURSOR_FIELD, REST_PREFIX } from '../contract/protocol.js';
import type { Definition, Limits } from '../definition/definition.js';
import { integerSchema } from '../operations/input.js';

const EXAMPLE_HOST = 'https://store.example.org';

/** A limit and what is left of it: PostgreSQL stores limits as 32-bit integers. */
const count = integerSchema(0, 2 ** 31 - 1);

/** The revision of the draft that the two headers follow; revisions before 08 had other parameters. */
const LIMITS_DRAFT = 'draft-ietf-httpapi-ratelimit-headers-10';

/**
 * Every header of a response that clients may rely on, by its name among the document's components. The examples show the
 * first response to a key of the fallback plan.
 */
export function createHeaders(definition: Definition) {
  const mainPath = REST_PREFIX + definition.identity.mainPath;
  const limits = fallbackLimits(definition);
  return {
    'X-RateLimit-Limit': {
      description: 'Requests allowed in the window that is currently tighter for the caller',
      required: true,
      schema: count,
      example: limits.perMinute,
    },
    'X-RateLimit-Remaining': {
      description: 'Requests left in the current window',
      required: true,
      schema: count,
      example: limits.perMinute - 1,
    },
    'X-RateLimit-Reset': {
      description: 'When the window ends: a Unix timestamp in seconds, rounded up',
      required: true,
      schema: integerSchema(1, Number.MAX_SAFE_INTEGER),
      example: 1_769_850_060,
    },
    'RateLimit-Policy': {
      description: `The windows: quota \`q\` and length \`w\` in seconds (${LIMITS_DRAFT})`,
      required: true,
      schema: { type: 'string', pattern: listOf('q=\\d+;w=\\d+') },
      example: listWindows(definition, limits, (limit, seconds) => `q=${limit};w=${seconds}`),
    },
    RateLimit: {
      description: `What is left of each window: requests \`r\` and seconds until it ends \`t\` (${LIMITS_DRAFT})`,
      required: true,
      schema: { type: 'string', pattern: listOf('r=\\d+;t=\\d+') },
      example: listWindows(definition, limits, (limit, seconds) => `r=${limit - 1};t=${seconds}`),
    },
    'X-Request-Id': {
      description: 'Identifies this request in the log of the service. An id that the client sends is kept.',
      required: true,
      schema: { type: 'string', minLength: 1, maxLength: 128 },
      example: '0b0f0b5e-8f0c-4d0e-9d5b-3a1f6e0c7b1d',
    },
    'X-API-Key-Expires': {
      description: `When the API key stops working (RFC 3339). Sent in its last ${EXPIRY_NOTICE_DAYS} days.`,
      schema: { type: 'string', format: 'date-time' },
      example: '2026-03-02T09:30:00.000Z',
    },
    'Preference-Applied': {
      description: 'Sent when the error is the one that `Prefer` asked for (RFC 7240)',
      schema: { type: 'string', pattern: '^error=[a-z_]+$' },
      example: 'error=rate_limit_exceeded',
    },
    'Retry-After': {
      description: 'Seconds to wait before the next attempt',
      required: true,
      schema: integerSchema(1, 2 ** 31 - 1),
      example: 60,
    },
    'WWW-Authenticate': {
      description: 'How to authenticate, and with a 403 which scope the key lacks (RFC 6750)',
      required: true,
      schema: { type: 'string', pattern: '^Bearer\\b' },
      example: 'Bearer',
    },
    Allow: {
      description: 'The methods that this path supports',
      required: true,
      schema: { type: 'string', pattern: '^[A-Z]+(, [A-Z]+)*$' },
      example: 'GET, POST, HEAD',
    },
    Location: {
      description: 'The address of the new resource',
      required: true,
      schema: { type: 'string', format: 'uri-reference' },
      example: `${mainPath}/7`,
    },
    'Idempotency-Replayed': {
      description:
        'Sent when this is the stored response to an earlier request with the same Idempotency-Key',
      schema: { type: 'string', const: 'true' },
      example: 'true',
    },
    NextPage: {
      description: 'The address of the next page, with `rel="next"` (RFC 8288). Sent only when more follow.',
      schema: { type: 'string', pattern: '^<[^>]+>; rel="next"$' },
      example: `<${EXAMPLE_HOST}${mainPath}?limit=20&cursor=20>; rel="next"`,
    },
    Successor: {
      description:
        'The address of the replacement, with `rel="successor-version"` (RFC 5829), and of the documentation of ' +
        'the deprecation and the removal, with `rel="deprecation"` (RFC 9745) and `rel="sunset"` (RFC 8594). Sent until ' +
        'the removal.',
      schema: { type: 'string', pattern: '^<[^>]+>; rel="successor-version"' },
      example:
        `<${EXAMPLE_HOST}${mainPath}>; rel="successor-version", ` +
        `<${EXAMPLE_HOST}/docs#description/how-an-operation-is-removed>; rel="deprecation"; type="text/html", ` +
        `<${EXAMPLE_HOST}/docs#description/how-an-operation-is-removed>; rel="sunset"; type="text/html"`,
    },
    Deprecation: {
      description:
        'Since when the operation is deprecated: a Unix timestamp (RFC 9745). Sent until the removal.',
      schema: { type: 'string', pattern: '^@\\d+$' },
      example: '@1764892800',
    },
    Sunset: {
      description: 'When the operation is removed: an HTTP date (RFC 8594). Sent until the removal.',
      schema: {
        type: 'string',
        pattern: '^[A-Z][a-z]{2}, \\d{2} [A-Z][a-z]{2} \\d{4} \\d{2}:\\d{2}:\\d{2} GMT$',
      },
      example: 'Thu, 05 Dec 2030 00:00:00 GMT',
    },
  } as const satisfies Record<string, oas31.HeaderObject>;
}

export type HeaderName = keyof ReturnType<typeof createHeaders>;
export type Headers = Readonly<Record<HeaderName, oas31.HeaderObject>>;

/** The two kinds of Link have separate descriptions. */
function toFieldName(name: string): string {
  return name === 'NextPage' || name === 'Successor' ? 'Link' : name;
}

/** The headers of every response that counts against a limit. */
export const LIMIT_HEADERS: readonly HeaderName[] = [
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
  'RateLimit-Policy',
  'RateLimit',
];

export const COMMON_HEADERS: readonly HeaderName[] = [...LIMIT_HEADERS, 'X-Request-Id', 'X-API-Key-Expires'];

export const ERROR_HEADERS: readonly HeaderName[] = [...COMMON_HEADERS, 'Preference-Applied'];

/** The headers of every response of a deprecated operation. */
export const DEPRECATION_HEADERS: readonly HeaderName[] = ['Deprecation', 'Sunset', 'Successor'];

/** All field names, also tRPC's own, which the guide on TypeScript describes and the document does not. */
export const listFieldNames = (headers: Headers): string[] => [
  ...new Set([...Object.keys(headers).map(toFieldName), NEXT_CURSOR_FIELD]),
];

/** The headers of a response, as references to the components. */
export function headerRefs(names: readonly HeaderName[]): Record<string, { $ref: string }> {
  return Object.fromEntries(
    names.map((name) => [toFieldName(name), { $ref: `#/components/headers/${name}` }]),
  );
}

/** The headers of a response that may lack them, in full: a reference cannot make a required header optional. */
export function optionalHeaders(
  headers: Headers,
  names: readonly HeaderName[],
): Record<string, oas31.HeaderObject> {
  return Object.fromEntries(names.map((name) => [name, { ...headers[name], required: false }]));
}

/** The pattern of a structured field list (RFC 9651): named windows, each with the same parameters. */
function listOf(parameters: string): string {
  const item = `"[a-z]+";${parameters}`;
  return `^${item}(, ${item})*$`;
}

/** The examples' windows as a structured field list. */
function listWindows(
  { windows }: Definition,
  limits: Limits,
  toParameters: (limit: number, seconds: number) => string,
): string {
  return windows
    .flatMap(({ name, lengthMs, field }) => {
      const limit = limits[field];
      return limit === undefined ? [] : `"${name}";${toParameters(limit, lengthMs / 1000)}`;
    })
    .join(', ');
}
