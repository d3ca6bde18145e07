const NOT_ENCODED =
  'has a character that must be percent-encoded, for example in the password: %25 for %, %23 for #, %2F for /, %3F for ?, %40 for @, %20 for a space';
const SEVERAL_HOSTS =
  'names several hosts, and only one can be used: set an address that follows the primary';
const NO_URL = 'must be a URL that starts with postgresql:// or postgres://';

/**
 * The URL in DATABASE_URL: of one host, or of a directory with a socket, which replaces the host or is given as the
 * parameter `host`.
 *
 * @throws Error whose message says what is wrong, without any of the text: it may hold a password
 */
export function parseDatabaseUrl(text: string): string {
  if (!isPercentEncoded(text)) throw new Error(NOT_ENCODED);
  if (hasSeveralHosts(text)) throw new Error(SEVERAL_HOSTS);
  // URL does not parse a user without a host.
  const complete = text.replace('@/', '@localhost/');
  if (!URL.canParse(complete) || !/^postgres(?:ql)?:$/.test(new URL(complete).protocol))
    throw new Error(NO_URL);
  return text;
}

/** Otherwise pg would connect with another password or to another host, and its error mentions neither. */
function isPercentEncoded(text: string): boolean {
  if (!/^postgres(?:ql)?:\/\//.test(text)) return true;
  const endsBeforeAt = /^[^:]+:\/\/[^@/?]+:[^@/?]*[/?].*@/.test(text);
  return !endsBeforeAt && !/[\s#]/.test(text) && isDecodable(text);
}

function isDecodable(text: string): boolean {
  try {
    return decodeURIComponent(text) !== '';
  } catch {
    return false;
  }
}

/** libpq's lists of hosts: `postgresql://user@a,b/store` and `postgresql:///store?host=a,b` */
function hasSeveralHosts(text: string): boolean {
  const [hosts = ''] = text.replace(/^[^:]+:\/\/([^/?#]*@)?/, '').split(/[/?#]/);
  return hosts.includes(',') || /[?&]host=[^&#]*(,|%2C)/i.test(text);
}
