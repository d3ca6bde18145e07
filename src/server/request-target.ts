import type { IncomingMessage } from 'node:http';

/** A path without a route. */
const UNROUTABLE = '/-';

/**
 * Converts any request target (RFC 9112, section 3.2) to the path and query to route by. It drops the host of an
 * absolute form and any fragment, takes broken percent-encoding literally, and maps a target without a path (`*`, an
 * authority) to a path without a route. So every request passes the same hooks, and none fails in Fastify's router.
 */
export function toRoutableUrl({ url = '' }: IncomingMessage): string {
  const [target = ''] = (url.startsWith('/') ? url : readAbsoluteForm(url)).split('#', 1);
  const end = target.indexOf('?');
  const path = end === -1 ? target : target.slice(0, end);
  return canDecode(path) ? target : path.replaceAll('%', '%25') + target.slice(path.length);
}

function readAbsoluteForm(url: string): string {
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url)) return UNROUTABLE;
  const { pathname, search } = new URL(url);
  return pathname + search;
}

function canDecode(path: string): boolean {
  if (!path.includes('%')) return true;
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}
