import type { IncomingMessage } from 'node:http';

/** An address that no route has. */
const NOWHERE = '/-';

/**
 * The path and query to route by, for any request target (RFC 9112, section 3.2): absolute-form loses its host, a
 * fragment, which has no place there, is cut, what is no path (`*`, an authority) leads nowhere, and a path whose
 * percent-encoding is broken is taken literally. So every request passes the same hooks, and none is answered by the
 * router's own errors.
 */
export function toRoutableUrl({ url = '' }: IncomingMessage): string {
  const [target = ''] = (url.startsWith('/') ? url : readAbsoluteForm(url)).split('#', 1);
  const end = target.indexOf('?');
  const path = end === -1 ? target : target.slice(0, end);
  return canDecode(path) ? target : path.replaceAll('%', '%25') + target.slice(path.length);
}

function readAbsoluteForm(url: string): string {
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url)) return NOWHERE;
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
