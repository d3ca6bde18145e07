import type { RedisOptions } from 'ioredis';

/** What a URL such as `redis+sentinel://user:password@host:26379,host:26379/name` says, in the words of ioredis. */
export interface SentinelUrl
  extends Pick<
    RedisOptions,
    'username' | 'password' | 'sentinelUsername' | 'sentinelPassword' | 'db' | 'tls' | 'sentinelTLS'
  > {
  readonly sentinels: { host: string; port: number }[];
  /** The name by which the Sentinels know the primary */
  readonly name: string;
}

const SENTINEL_PORT = 26_379;
const PARAMETERS = ['sentinelUsername', 'sentinelPassword', 'db'];
/** The parameters of a server's URL. ioredis would take any of its options. */
const SERVER_PARAMETERS = ['db', 'family'];
const DATABASE = /^\d{1,9}$/;
/** Scheme, user and password, hosts, name and query: URL takes one host only. */
const SENTINEL_URL = /^(rediss?)\+sentinel:\/\/([^@/?#]*@)?([^@/?#]*)(\/[^#]*|)$/i;

export function isSentinelUrl(text: string): boolean {
  return /^rediss?\+sentinel:/i.test(text);
}

/**
 * The URLs in REDIS_URL: of a server, of nodes of a cluster separated by commas, or one that holds all Sentinels.
 *
 * @throws Error whose message says what is wrong, without any of the text, which may hold passwords
 */
export function parseRedisUrls(text: string): string[] {
  const trimmed = text.trim();
  const urls = isSentinelUrl(trimmed) ? [trimmed] : trimmed.split(',').map((url) => url.trim());
  const present = urls.filter((url) => url !== '');
  checkRedisUrls(present);
  return present;
}

/** @throws Error as `parseRedisUrls` */
export function checkRedisUrls(urls: readonly string[]): void {
  if (!Array.isArray(urls) || !urls.every((url) => typeof url === 'string'))
    fail('must be an array of URLs, as parseRedisUrls makes it of a text');
  const [first = ''] = urls;
  if (urls.length === 1 && isSentinelUrl(first)) parseSentinelUrl(first);
  else checkServerUrls(urls);
}

/** Reads the URLs again. While they cannot be read, those that were read last stay. */
export function createUrlReader(
  read: () => readonly string[],
  initial: readonly string[],
  onError: (error: Error) => void,
): () => readonly string[] {
  let last = initial;
  return () => {
    try {
      const urls = read();
      checkRedisUrls(urls);
      // Without a URL, ioredis would connect to a Redis on this machine.
      if (urls.length === 0) fail('there is none');
      last = urls;
    } catch (error) {
      onError(new Error(`The URLs of Redis cannot be read again: ${(error as Error)?.message}`));
    }
    return last;
  };
}

function checkServerUrls(urls: readonly string[]): void {
  for (const url of urls) {
    if (!URL.canParse(url) || !/^rediss?:$/.test(new URL(url).protocol)) {
      fail(
        'must hold URLs that start with redis:// or rediss://, or one with redis+sentinel:// or rediss+sentinel://',
      );
    }
    readUser(new URL(url));
    checkDatabase(new URL(url), urls.length > 1);
  }
}

/** If the database is no number, ioredis uses database 0. */
function checkDatabase({ pathname, searchParams }: URL, isCluster: boolean): void {
  if ([...searchParams.keys()].some((key) => !SERVER_PARAMETERS.includes(key)))
    fail(`may have the parameters ${SERVER_PARAMETERS.join(', ')} and no others`);
  const databases = [pathname.slice(1), ...searchParams.getAll('db')].filter((text) => text !== '');
  if (!databases.every((database) => DATABASE.test(database)))
    fail('may end with the number of a database, and nothing else: redis://host:6379/1');
  if (isCluster && databases.some((database) => Number(database) !== 0))
    fail('must not name a database with several URLs: those are a cluster, which has only database 0');
}

/** @throws Error as `parseRedisUrls` */
export function parseSentinelUrl(text: string): SentinelUrl {
  const [, scheme = '', user = '', hosts = '', rest = ''] =
    SENTINEL_URL.exec(text) ?? fail('must be like redis+sentinel://host:port,host:port/name');
  // In a form's encoding + is a space, but passwords have plus signs.
  const url = new URL(`redis://${user}host${rest.replaceAll('+', '%2B')}`);
  const { pathname, searchParams } = url;
  // Sentinels allow no other characters in a name.
  const [, name] =
    /^\/([\w.-]+)$/.exec(pathname) ??
    fail('must end with the name of the primary: redis+sentinel://host:port/name');
  if ([...searchParams.keys()].some((key) => !PARAMETERS.includes(key))) {
    fail(`may have the parameters ${PARAMETERS.join(', ')} and no others`);
  }
  const { db = '0', ...sentinelUser } = Object.fromEntries(searchParams);
  if (!DATABASE.test(db)) fail('must have the number of a database as db');
  return {
    sentinels: hosts.split(',').map((host) => parseHost(host.trim())),
    name: name ?? '',
    ...readUser(url),
    ...sentinelUser,
    db: Number(db),
    ...(/^rediss$/i.test(scheme) && { tls: {}, sentinelTLS: {} }),
  };
}

/** User and password, '' for none */
export function readUser({ username, password }: URL): { username: string; password: string } {
  try {
    return { username: decodeURIComponent(username), password: decodeURIComponent(password) };
  } catch {
    return fail('has a % that is not followed by two hexadecimal digits in its user or password');
  }
}

function parseHost(host: string): { host: string; port: number } {
  const url = `redis://${host}`;
  if (host === '' || !URL.canParse(url)) fail('must have host:port,host:port for the sentinels');
  const { hostname, port } = new URL(url);
  // An IPv6 address is in brackets in a URL only.
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || SENTINEL_PORT) };
}

function fail(problem: string): never {
  throw new Error(problem);
}
