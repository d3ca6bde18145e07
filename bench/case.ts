/** Pets in the catalogue before the first create: their ids are 1 to this, their statuses alternate. */
export const PET_COUNT = 100_000;
export const STATUSES = ['available', 'pending', 'sold'] as const;

/** API keys, as many of each kind. */
export interface Keys {
  readonly unlimited: readonly string[];
  /** Each allows one request a day, which is used up before the case is measured. */
  readonly exhausted: readonly string[];
  /** Well-formed, but nobody's */
  readonly unknown: readonly string[];
}

/** One kind of request, and how to recognise the right response. `n` is a random id with at least 400 ids after it. */
export interface Case {
  readonly name: string;
  readonly method: 'GET' | 'PATCH' | 'POST';
  path(n: number): string;
  readonly body?: (n: number) => string;
  /** Besides the key and those of the body. {@link UNIQUE} in a value becomes another number in each request. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly key: keyof Keys;
  readonly status: number;
  /** Whether `n` is another pet in each request, one that is available */
  readonly isDistinct?: boolean;
  /** SQL that adds what the requests need before any is sent */
  readonly prepare?: string;
  /** SQL that undoes what that and the requests have changed. Without it, they may be sent again as they are */
  readonly undo?: string;
  /** Text in the body of the right response that is most unlikely in that of a wrong one */
  expected(n: number): readonly string[];
}

/** As many characters as the number that takes its place has digits */
export const UNIQUE = '#'.repeat(16);
