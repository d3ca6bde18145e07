/** How many pets the catalogue holds before the first create; their ids are 1 to this, their statuses take turns. */
export const PETS = 100_000;
export const STATUSES = ['available', 'pending', 'sold'] as const;

export interface Keys {
  /** One that is never used up */
  readonly plenty: string;
  /** One whose day is used up */
  readonly spent: string;
  /** Well-formed, and nobody's */
  readonly unknown: string;
}

/** One kind of request and what makes its answer right. `n` is a random id, of which at least 400 follow. */
export interface Case {
  readonly name: string;
  readonly method: 'GET' | 'POST';
  path(n: number): string;
  readonly body?: (n: number) => string;
  readonly key: keyof Keys;
  readonly status: number;
  /** Text that the body of a right answer holds, and that of a wrong one is most unlikely to */
  expect(n: number): readonly string[];
}

const first = (n: number, count: number) => [`"id":${n + 1},`, `"id":${n + count},`];
const input = (value: object) => `input=${encodeURIComponent(JSON.stringify(value))}`;
const TEN = Array.from({ length: 10 }, (_, index) => index);

export const cases = {
  list20: get(
    'list of 20',
    (n) => `/v1/pets?cursor=${n}`,
    (n) => first(n, 20),
  ),
  status20: get(
    'list of 20 by status',
    (n) => `/v1/pets?status=${STATUSES[n % 3]}&cursor=${n}`,
    (n) => [`"id":${n + 3},`, `"id":${n + 60},`],
  ),
  list100: get(
    'list of 100',
    (n) => `/v1/pets?limit=100&cursor=${n}`,
    (n) => first(n, 100),
  ),
  get: get(
    'get',
    (n) => `/v1/pets/${n}`,
    (n) => [`"id":${n},`],
  ),
  create: {
    name: 'create',
    method: 'POST',
    path: () => '/v1/pets',
    body: (n) => JSON.stringify({ name: `Pet number ${n}`, categoryId: n, status: 'pending' }),
    key: 'plenty',
    status: 201,
    expect: (n) => [`"name":"Pet number ${n}","categoryId":${n},"status":"pending"`],
  },
  badKey: {
    ...get(
      'bad key',
      (n) => `/v1/pets?cursor=${n}`,
      () => ['"code":"invalid_api_key"'],
    ),
    key: 'unknown',
    status: 401,
  },
  refused: {
    ...get(
      'refused key',
      (n) => `/v1/pets?cursor=${n}`,
      () => ['"code":"rate_limit_exceeded"'],
    ),
    key: 'spent',
    status: 429,
  },
  rpcList20: get(
    'tRPC list of 20',
    (n) => `/trpc/listPets?${input({ cursor: n })}`,
    (n) => first(n, 20),
  ),
  rpcGet: get(
    'tRPC get',
    (n) => `/trpc/getPet?${input({ petId: n })}`,
    (n) => [`"id":${n},`],
  ),
  rpcBatch: get(
    'tRPC batch of ten gets',
    (n) =>
      `/trpc/${TEN.map(() => 'getPet').join()}?batch=1&${input(Object.fromEntries(TEN.map((i) => [i, { petId: n + i }])))}`,
    (n) => TEN.map((i) => `"id":${n + i},`),
  ),
} satisfies Record<string, Case>;

export type CaseName = keyof typeof cases;

function get(name: string, path: Case['path'], expect: Case['expect']): Case {
  return { name, method: 'GET', path, key: 'plenty', status: 200, expect };
}
