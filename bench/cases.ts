import { type Case, STATUSES, UNIQUE } from './case.js';
import { orderCases } from './order-cases.js';

/** How many callers there are, and how many requests at once. */
export interface Load {
  readonly connections: number;
  /** They take turns: every request on any connection is made with the next one. */
  readonly keys: number;
}

/** @param networkMs the round trip to PostgreSQL and to Redis; 0 without a network */
export function describeLoad({ connections, keys }: Load, networkMs = 0): string {
  const count = (n: number, noun: string) => `${n.toLocaleString('en')} ${noun}${n === 1 ? '' : 's'}`;
  const network = networkMs > 0 ? `, ${networkMs} ms to PostgreSQL and to Redis` : '';
  return `${count(connections, 'connection')}, ${count(keys, 'key')}${network}`;
}

const firstAndLast = (n: number, count: number) => [`"id":${n + 1},`, `"id":${n + count},`];
const rpcInput = (value: object) => `input=${encodeURIComponent(JSON.stringify(value))}`;
const TEN = Array.from({ length: 10 }, (_, index) => index);
const BATCH_PATH = `/trpc/${TEN.map(() => 'getPet').join()}`;

const create = {
  name: 'create',
  method: 'POST',
  path: () => '/v1/pets',
  body: (n) => JSON.stringify({ name: `Pet number ${n}`, categoryId: n, status: 'pending' }),
  key: 'unlimited',
  status: 201,
  expected: (n) => [`"name":"Pet number ${n}","categoryId":${n},"status":"pending"`],
} satisfies Case;

export const cases = {
  list20: get(
    'list of 20',
    (n) => `/v1/pets?cursor=${n}`,
    (n) => firstAndLast(n, 20),
  ),
  status20: get(
    'list of 20 by status',
    (n) => `/v1/pets?status=${STATUSES[n % 3]}&cursor=${n}`,
    (n) => [`"id":${n + 3},`, `"id":${n + 60},`],
  ),
  list100: get(
    'list of 100',
    (n) => `/v1/pets?limit=100&cursor=${n}`,
    (n) => firstAndLast(n, 100),
  ),
  get: get(
    'get',
    (n) => `/v1/pets/${n}`,
    (n) => [`"id":${n},`],
  ),
  create,
  patch: {
    name: 'change an animal',
    method: 'PATCH',
    path: (n) => `/v1/pets/${n}`,
    body: (n) => JSON.stringify({ categoryId: n }),
    key: 'unlimited',
    status: 200,
    expected: (n) => [`"id":${n},`, `"categoryId":${n},`],
  },
  ...orderCases,
  keyedCreate: { ...create, name: 'keyed create', headers: { 'Idempotency-Key': UNIQUE } },
  badKey: {
    ...get(
      'bad key',
      (n) => `/v1/pets?cursor=${n}`,
      () => ['"code":"invalid_api_key"'],
    ),
    key: 'unknown',
    status: 401,
  },
  overLimit: {
    ...get(
      'over the limit',
      (n) => `/v1/pets?cursor=${n}`,
      () => ['"code":"rate_limit_exceeded"'],
    ),
    key: 'exhausted',
    status: 429,
  },
  rpcList20: get(
    'tRPC list of 20',
    (n) => `/trpc/listPets?${rpcInput({ cursor: n })}`,
    (n) => firstAndLast(n, 20),
  ),
  rpcGet: get(
    'tRPC get',
    (n) => `/trpc/getPet?${rpcInput({ petId: n })}`,
    (n) => [`"id":${n},`],
  ),
  rpcBatch: get(
    'tRPC batch of ten gets',
    (n) => `${BATCH_PATH}?batch=1&${rpcInput(Object.fromEntries(TEN.map((i) => [i, { petId: n + i }])))}`,
    (n) => TEN.map((i) => `"id":${n + i},`),
  ),
  mcpList20: callTool(
    'MCP list of 20',
    'listPets',
    (n) => ({ cursor: n }),
    (n) => firstAndLast(n, 20),
  ),
  mcpGet: callTool(
    'MCP get',
    'getPet',
    (n) => ({ petId: n }),
    (n) => [`"id":${n},`],
  ),
} satisfies Record<string, Case>;

export type CaseId = keyof typeof cases;

export const CASE_IDS = Object.keys(cases) as CaseId[];

/** Of ten requests, five get a pet, four list twenty, and one creates one. */
export const MIX: readonly CaseId[] = [...Array(5).fill('get'), ...Array(4).fill('list20'), 'create'];

/** Whether it is of a protocol that only this service has. */
export function isRpc(caseId: CaseId): boolean {
  return !cases[caseId].path(1).startsWith('/v1');
}

/**
 * The case that the examples are measured with where they have not got this one: the same over REST, without an
 * idempotency key. A batch is compared with a single get.
 */
export const counterparts: Partial<Record<CaseId, CaseId>> = {
  keyedCreate: 'create',
  rpcList20: 'list20',
  rpcGet: 'get',
  rpcBatch: 'get',
  mcpList20: 'list20',
  mcpGet: 'get',
};

function get(name: string, path: Case['path'], expected: Case['expected']): Case {
  return { name, method: 'GET', path, key: 'unlimited', status: 200, expected };
}

function callTool(
  name: string,
  tool: string,
  input: (n: number) => object,
  expected: Case['expected'],
): Case {
  const protocolVersion = '2026-07-28';
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': protocolVersion,
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  return {
    name,
    method: 'POST',
    path: () => '/mcp',
    headers: { 'MCP-Protocol-Version': protocolVersion, 'Mcp-Method': 'tools/call', 'Mcp-Name': tool },
    body: (n) =>
      JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: tool, arguments: input(n), _meta },
      }),
    key: 'unlimited',
    status: 200,
    expected,
  };
}
