import { MAX_PAGE_SIZE, NEXT_CURSOR_FIELD } from './protocol.js';

/** What every list takes besides its filters. */
interface PageInput {
  readonly limit?: number | undefined;
  readonly cursor?: number | undefined;
}

/** tRPC adds void to the type of an optional input. */
// biome-ignore lint/suspicious/noConfusingVoidType: it is part of the type that is inferred
type None = void | undefined;

/** The input of a list without the cursor */
type Filter<Input> = Omit<Exclude<Input, None>, 'cursor'>;

interface Options {
  readonly signal?: AbortSignal;
}

/** The arguments of a list. A nested list, such as the loans of a book, requires the parameters of its path. */
type Arguments<Input> =
  Partial<Filter<Input>> extends Filter<Input>
    ? [filter?: Filter<Input>, options?: Options]
    : [filter: Filter<Input>, options?: Options];

/** A list of a client, such as `client.listItems` */
interface List<Input, Item> {
  readonly query: (input: Input, options?: Options) => Promise<Item[]>;
}

/** For each array that a list has returned, the cursor of the next page; null after the last page. */
const nextCursors = new WeakMap<object, number | null>();

/**
 * Iterates over the pages of a list. None is empty, and each is requested only when the loop reaches it. Pages have the
 * maximum size unless a `limit` is given. Rejects as the list's own `query` does.
 *
 * @example for await (const page of pages(client.listItems, { limit: 20 })) show(page);
 */
export async function* pages<Input extends PageInput | None, Item extends { readonly id: number }>(
  list: List<Input, Item>,
  ...[filter, options = {}]: Arguments<Input>
): AsyncGenerator<Item[], void, undefined> {
  const { limit = MAX_PAGE_SIZE, ...filters }: PageInput = filter ?? {};
  let cursor: number | null | undefined;
  do {
    const page = await list.query({ ...filters, limit, cursor } as Input, options);
    if (page.length > 0) yield page;
    // An older service sends no cursor, so a full page may be followed by an empty one.
    cursor = nextCursors.has(page) || page.length >= limit ? nextCursor(page) : null;
  } while (cursor !== null);
}

/**
 * Iterates over the items of a list, and requests each page when the loop reaches its first item: see `pages`.
 *
 * @example for await (const item of items(client.listItems)) show(item);
 */
export async function* items<Input extends PageInput | None, Item extends { readonly id: number }>(
  list: List<Input, Item>,
  ...rest: Arguments<Input>
): AsyncGenerator<Item, void, undefined> {
  for await (const page of pages(list, ...rest)) yield* page;
}

/**
 * The `cursor` of the page after one that the client has returned; null after the last page. Caches copy pages: for a copy
 * it is the id of the last item, so an empty page may follow the last one; null if the copy is empty.
 */
export function nextCursor(page: readonly { readonly id: number }[]): number | null {
  const known = nextCursors.get(page);
  return known === undefined ? (page.at(-1)?.id ?? null) : known;
}

/** Remembers the cursors of the pages in a response. Its header names each page by its position in the batch. */
export function rememberCursors(headers: Headers, body: unknown): void {
  const results = (Array.isArray(body) ? body : [body]) as { result?: { data?: unknown } }[];
  for (const [, index, cursor] of (headers.get(NEXT_CURSOR_FIELD) ?? '').matchAll(/(\d+)=(-?\d+|null)/g)) {
    const page = results[Number(index)]?.result?.data;
    if (Array.isArray(page)) nextCursors.set(page, cursor === 'null' ? null : Number(cursor));
  }
}
