import { MAX_PAGE_SIZE, NEXT_CURSOR_FIELD } from './protocol.js';

/** What every list takes besides its filters. */
interface PageInput {
  readonly limit?: number | undefined;
  readonly cursor?: number | undefined;
}

/** To tRPC, an input that may be left out is void, too. */
// biome-ignore lint/suspicious/noConfusingVoidType: it is part of the type that is inferred
type None = void | undefined;

/** The input of a list without the cursor */
type Filter<Input> = Omit<Exclude<Input, None>, 'cursor'>;

interface Options {
  readonly signal?: AbortSignal;
}

/** What a list takes here. A list of what belongs to something has to be told to what. */
type Arguments<Input> =
  Partial<Filter<Input>> extends Filter<Input>
    ? [filter?: Filter<Input>, options?: Options]
    : [filter: Filter<Input>, options?: Options];

/** A list of a client, such as `client.listPets` */
interface List<Input, Item> {
  readonly query: (input: Input, options?: Options) => Promise<Item[]>;
}

/** What the service has said of the pages that it has returned. The entry goes with its array. */
const nextCursors = new WeakMap<object, number | null>();

/**
 * Iterates over the pages of a list; none is empty, and each is requested only when it is asked for. Pages have the maximum
 * size unless a `limit` is given. Rejects as the list's own `query` does.
 *
 * @example for await (const page of pages(client.listPets, { status: 'available' })) show(page);
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
    cursor = nextCursor(page);
    // The service is an older one, so that a full page may be followed by an empty one.
    if (cursor === undefined && page.length >= limit) cursor = page.at(-1)?.id;
  } while (cursor != null);
}

/**
 * Iterates over the items of a list, and requests each page when its first item is asked for: see `pages`.
 *
 * @example for await (const pet of items(client.listPets, { status: 'available' })) show(pet);
 */
export async function* items<Input extends PageInput | None, Item extends { readonly id: number }>(
  list: List<Input, Item>,
  ...rest: Arguments<Input>
): AsyncGenerator<Item, void, undefined> {
  for await (const page of pages(list, ...rest)) yield* page;
}

/**
 * The `cursor` of the page that follows one which a list of the client has returned; null if it is the last, and undefined
 * where the service has not said, as for a copy of the array: a page that is shorter than its `limit` is the last, then.
 */
export function nextCursor(page: readonly unknown[]): number | null | undefined {
  return nextCursors.get(page);
}

/** Keeps what the header of a response says of the pages in its body, which a batch holds by their places. */
export function rememberCursors(headers: Headers, body: unknown): void {
  const results = (Array.isArray(body) ? body : [body]) as { result?: { data?: unknown } }[];
  for (const [, index, cursor] of (headers.get(NEXT_CURSOR_FIELD) ?? '').matchAll(/(\d+)=(-?\d+|null)/g)) {
    const page = results[Number(index)]?.result?.data;
    if (Array.isArray(page)) nextCursors.set(page, cursor === 'null' ? null : Number(cursor));
  }
}
