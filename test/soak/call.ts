import type { OperationName } from './operations.js';
import type { Write } from './register.js';

/** A call of an operation, over REST or tRPC, and how to recognise the right output. */
export interface Call {
  readonly operation: OperationName;
  readonly input: Readonly<Record<string, unknown>>;
  /** Returns what is wrong with the output of a call that succeeded. `sentAt` is by performance.now(). */
  check(output: unknown, sentAt: number): string | undefined;
  /** Returns what is wrong with the headers that only REST has, beside a right output. */
  readonly checkHeaders?: (headers: NodeJS.Dict<string | string[]>, output: unknown) => string | undefined;
  /** Returns why an error that the operation declares was not to be expected. */
  readonly checkRefusal?: (sentAt: number, code: string) => string | undefined;
  /** Called when the response was lost or a 503. */
  readonly noteLost?: () => void;
  /** Called for any other error. */
  readonly noteRefused?: () => void;
  /** The same call for a repetition, where that is a write of its own */
  readonly again?: () => Call;
  /** Whether PostgreSQL rejects it, which the service does not expect: a 500 */
  readonly isRejected?: boolean;
}

export const DEFAULT_LIMIT = 20;
export const MAX_LIMIT = 100;

export function noteAll(writes: readonly Write[], outcome: keyof Write): void {
  for (const write of writes) write[outcome]();
}

/** Returns what is wrong with the link to the page after these ids. `hasMore`: whether there must be one */
export function checkNextLink(
  { link }: NodeJS.Dict<string | string[]>,
  ids: readonly number[],
  { size, hasMore }: { readonly size: number; readonly hasMore: boolean },
): string | undefined {
  const next = /[?&]cursor=(\d+)[^>]*>; rel="next"/.exec(String(link))?.[1];
  if (next === undefined) return hasMore ? 'Link does not lead to the next page' : undefined;
  return ids.length === size && Number(next) === ids.at(-1)
    ? undefined
    : 'Link leads to another page than the next';
}
