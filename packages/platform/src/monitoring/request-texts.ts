import type { FastifyRequest } from 'fastify';
import type { KeySearch } from '../keys/format.js';

/** Texts that the client chose, as the log shows them: without keys, and shortened */
export interface ClientTexts {
  readonly path: string | undefined;
  readonly query: string | undefined;
  readonly userAgent: string | undefined;
}

/** How much is logged of a text that a client makes up: enough to recognise it, too little to fill the log. */
const MAX_TEXT_LENGTH = 200;

export type TextReaders = ReturnType<typeof createTextReaders>;

export function createTextReaders({ redactKeys }: Pick<KeySearch, 'redactKeys'>) {
  /** Keys are replaced before the text is cut off, because most of a key is nearly as good as all of it. */
  const shorten = (text: string | undefined) =>
    text === undefined ? undefined : redactKeys(text).slice(0, MAX_TEXT_LENGTH);
  return {
    readTexts({ url, headers }: FastifyRequest): ClientTexts {
      const [path = '', query] = url.split('?', 2);
      return {
        path: shorten(normalise(path)),
        query: query === undefined ? undefined : shorten(normalise(query)),
        userAgent: shorten(headers['user-agent']),
      };
    },
    readUserAgent: ({ headers }: FastifyRequest) => shorten(headers['user-agent']),
    /** The path of a request without a route, which has no pattern. The query may hold anything, so it is left out. */
    readUnknownPath: ({ url, routeOptions, is404 }: FastifyRequest): string | undefined =>
      is404 || routeOptions.url === undefined ? shorten(normalise(url.split('?', 1)[0] ?? '')) : undefined,
  };
}

/**
 * Letters, digits and `-._~` need no escape, and mean the same with one (RFC 3986, section 2.3). An escape would keep a
 * key from being found and replaced.
 */
function normalise(path: string): string {
  return path.replaceAll(/%[2-7][\dA-F]/gi, (escaped) => {
    const character = String.fromCharCode(Number.parseInt(escaped.slice(1), 16));
    return /[\w.~-]/.test(character) ? character : escaped;
  });
}
