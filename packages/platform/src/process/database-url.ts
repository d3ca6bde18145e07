import { z } from 'zod';
import { LEAST_CONNECTIONS, LIMIT_PARAMETER } from '../connections/connection-limit.js';

/** The values that each parameter may have. pg accepts unknown parameters silently. */
const PARAMETERS: Readonly<Record<string, RegExp>> = {
  schema: /^[^"\0]+$/,
  sslmode: /^(?:disable|prefer|require|verify-ca|verify-full|no-verify)$/,
  sslrootcert: /./,
  sslcert: /./,
  sslkey: /./,
  sslnegotiation: /^(?:postgres|direct)$/,
  uselibpqcompat: /^(?:true|false)$/,
  host: /^[^,]+$/,
  port: /^\d+$/,
  user: /./,
  password: /./,
  application_name: /./,
  options: /./,
  [LIMIT_PARAMETER]: /^(?:0|[1-9]\d{0,3})$/,
};

/**
 * Parameters in providers' URLs that are for other programs, or for what the service does by itself: pools, timeouts,
 * keep-alive, marks of a pooler. Leaving them out weakens nothing. pg would read some of them.
 */
const IGNORED =
  /^(?:pgbouncer|pool_timeout|connect_timeout|keepalives(?:_idle|_interval|_count)?|client_encoding|channel_binding|supa|workaround)$/;

/** What to do instead of parameters that other programs know */
const ADVICE: readonly (readonly [parameter: RegExp, advice: string])[] = [
  [/^(?:ssl|tls)$/, 'write sslmode=verify-full for TLS'],
  [
    /^(?:socket_timeout|statement_cache_size)$/,
    "it is for Prisma's own connections; the service has a pool of its own, and recognises a pooler by itself",
  ],
  [/timeout$/, 'the service has timeouts of its own'],
];

/** The name of a parameter, and no part of a password that follows an unescaped question mark. */
const NAME = /^[A-Za-z_]{1,40}$/;

/**
 * The URL in DATABASE_URL as pg takes it, without ignored parameters. It has one host, or a directory with a socket in place
 * of the host or as the parameter `host`. Problems are described without values, which may hold a password.
 */
export function databaseUrl() {
  return z
    .string()
    .refine(isPostgresUrl, {
      error:
        'must be a URL that starts with postgresql:// or postgres://, of one host, with special characters in the ' +
        'password percent-encoded: %23 for #, %25 for %, %2F for /, %3F for ?, %40 for @, %20 for a space',
      abort: true,
    })
    .superRefine((text, context) => {
      for (const problem of describeParameters(parse(text).searchParams)) context.addIssue(problem);
    })
    .transform((text) => {
      // In libpq, `system` stands for the authorities that are trusted anyway, and implies verify-full.
      const system = parse(text).searchParams.get('sslrootcert') === 'system';
      return mapParameters(text, (name, pair) => {
        if (IGNORED.test(name)) return [];
        if (!system || !/^ssl(?:mode|rootcert)$/.test(name)) return [pair];
        return name === 'sslrootcert' ? ['sslmode=verify-full'] : [];
      });
    });
}

/** The names of the parameters of DATABASE_URL that are ignored. */
export function findIgnored(text: string): string[] {
  const names: string[] = [];
  mapParameters(text, (name) => {
    if (IGNORED.test(name)) names.push(name);
    return [];
  });
  return names;
}

/** Changes only the parameters of a URL. */
function mapParameters(text: string, map: (name: string, pair: string) => readonly string[]): string {
  const [start = '', ...rest] = text.split('?');
  const pairs = rest.join('?').split('&');
  const mapped = pairs.flatMap((pair) => map([...new URLSearchParams(pair).keys()][0] ?? '', pair));
  return [start, mapped.filter(Boolean).join('&')].filter(Boolean).join('?');
}

function* describeParameters(parameters: URLSearchParams): Iterable<string> {
  const names = [...parameters.keys()];
  for (const name of new Set(names)) {
    if (IGNORED.test(name)) continue;
    const allowed = Object.hasOwn(PARAMETERS, name) ? PARAMETERS[name] : undefined;
    if (allowed === undefined) yield describeUnknown(name);
    else if (names.indexOf(name) !== names.lastIndexOf(name)) yield `has the parameter ${name} twice`;
    else if (!allowed.test(parameters.get(name) ?? ''))
      yield `has the parameter ${name} with a value that it cannot have (docs/configuration.md of @animal-store/platform)`;
  }
  if (Number(parameters.get(LIMIT_PARAMETER) ?? LEAST_CONNECTIONS) < LEAST_CONNECTIONS)
    yield `has a ${LIMIT_PARAMETER} below ${LEAST_CONNECTIONS}, which is the least that a process needs: raise it, or leave it out`;
  const mode = parameters.get('sslmode');
  const isVerified = /^(?:require|verify-ca|verify-full)$/.test(mode ?? '');
  if (parameters.get('sslrootcert') === 'system' && mode !== null && mode !== 'verify-full')
    yield 'has sslrootcert=system, which needs sslmode=verify-full';
  if (parameters.get('channel_binding') === 'require' && !(isVerified && !isLibpqCompatible(parameters)))
    yield 'has channel_binding=require, but the service checks the certificate instead: write sslmode=verify-full';
}

/** In this mode, only verify-full checks the host name in the certificate. */
const isLibpqCompatible = (parameters: URLSearchParams) =>
  parameters.get('uselibpqcompat') === 'true' && parameters.get('sslmode') !== 'verify-full';

function describeUnknown(name: string): string {
  const [, advice] = ADVICE.find(([pattern]) => pattern.test(name)) ?? [];
  const shown = NAME.test(name) ? `the parameter ${name}` : 'a parameter';
  return `has ${shown}, which the service does not know${advice === undefined ? '' : ` (${advice})`}: it takes ${Object.keys(PARAMETERS).join(', ')}`;
}

function isPostgresUrl(text: string): boolean {
  if (!URL.canParse(complete(text))) return false;
  const { protocol, host, pathname, searchParams, hash } = parse(text);
  const hasOneHost = !host.includes(',') && !searchParams.get('host')?.includes(',');
  // After the host, an @ or a # is the rest of a password with a raw slash or number sign.
  return /^postgres(?:ql)?:$/.test(protocol) && hasOneHost && !pathname.includes('@') && hash === '';
}

const parse = (text: string) => new URL(complete(text));

/** URL does not parse a user without a host. */
const complete = (text: string) => text.replace('@/', '@localhost/');
