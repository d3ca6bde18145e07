/** What a URL such as `redis+sentinel://user:password@host:26379,host:26379/name` says. */
export interface SentinelUrl {
  readonly sentinels: readonly { readonly host: string; readonly port: number }[];
  /** By which the sentinels know the primary */
  readonly name: string;
  /** Of the primary and its replicas; '' for none */
  readonly username: string;
  readonly password: string;
  /** Of the sentinels, which have users of their own; '' for none */
  readonly sentinelUsername: string;
  readonly sentinelPassword: string;
  /** The number of the database */
  readonly db: number;
  /** For the sentinels and the servers alike */
  readonly isTls: boolean;
}

const SENTINEL_PORT = 26_379;
const PARAMETERS = ['sentinelUsername', 'sentinelPassword', 'db'];
const SCHEME = /^redis(s?)\+sentinel:\/\//i;
/** User and password, hosts, name and query. URL takes one host only. */
const PARTS = /^(?:([^@/?#]*)@)?([^@/?#]*)\/?([^?#]*)(?:\?([^#]*))?$/;

export function isSentinelUrl(text: string): boolean {
  return SCHEME.test(text);
}

/**
 * The URLs in REDIS_URL: of a server, of nodes of a cluster separated by commas, or one that holds all sentinels.
 *
 * @throws Error as `parseSentinelUrl`, and when a user or password is not percent-encoded
 */
export function parseRedisUrls(text: string): string[] {
  if (isSentinelUrl(text.trim())) {
    parseSentinelUrl(text.trim());
    return [text.trim()];
  }
  const urls = text.split(',').map((url) => url.trim());
  const isUrl = (url: string) => URL.canParse(url) && /^rediss?:$/.test(new URL(url).protocol);
  const present = urls.filter((url) => url !== '');
  if (!present.every(isUrl)) {
    fail(
      'must hold URLs that start with redis:// or rediss://, or one with redis+sentinel:// or rediss+sentinel://',
    );
  }
  for (const url of present) {
    const { username, password } = new URL(url);
    decode(username);
    decode(password);
  }
  return present;
}

/** @throws Error whose message says what is wrong, without any of the text: it may hold passwords */
export function parseSentinelUrl(text: string): SentinelUrl {
  const [scheme = '', secure] = SCHEME.exec(text) ?? [];
  const [, credentials = '', hosts = '', name = '', query = ''] =
    PARTS.exec(text.slice(scheme.length)) ?? fail('must be like redis+sentinel://host:port,host:port/name');
  // Sentinels allow no other characters in a name.
  if (!/^[\w.-]+$/.test(name)) fail('must end with the name of the primary: redis+sentinel://host:port/name');
  const [username = '', ...password] = credentials.split(':');
  // A form's encoding has + for a space; passwords have plus signs.
  const parameters = new URLSearchParams(query.replaceAll('+', '%2B'));
  if ([...parameters.keys()].some((key) => !PARAMETERS.includes(key))) {
    fail(`may have the parameters ${PARAMETERS.join(', ')} and no others`);
  }
  const db = parameters.get('db') ?? '0';
  if (!/^\d{1,9}$/.test(db)) fail('must have the number of a database as db');
  return {
    sentinels: hosts.split(',').map((host) => parseHost(host.trim())),
    name,
    username: decode(username),
    password: decode(password.join(':')),
    sentinelUsername: parameters.get('sentinelUsername') ?? '',
    sentinelPassword: parameters.get('sentinelPassword') ?? '',
    db: Number(db),
    isTls: secure !== '',
  };
}

function parseHost(host: string): { host: string; port: number } {
  const url = `redis://${host}`;
  if (host === '' || !URL.canParse(url)) fail('must have host:port,host:port for the sentinels');
  const { hostname, port } = new URL(url);
  // An IPv6 address is in brackets in a URL only.
  return { host: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? SENTINEL_PORT : Number(port) };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return fail('has a % that is not followed by two hexadecimal digits in its user or password');
  }
}

function fail(problem: string): never {
  throw new Error(problem);
}
