import { expect, test } from 'vitest';
import { createClient } from '../src/create-client.js';

/** Without the contract, the types do not know whether it is a query or a mutation. */
type AnyOperation = Record<'query' | 'mutate', (input: object) => Promise<unknown>>;

/** Answers with the given statuses, and notes what was asked. */
function connect(...statuses: number[]) {
  const asked: string[] = [];
  const body = (status: number) =>
    status === 200
      ? { result: { data: { id: 1 } } }
      : {
          error: {
            message: 'x',
            code: -32603,
            data: { error: { code: 'internal_error', message: 'x', status } },
          },
        };
  const client = createClient({
    baseUrl: 'http://127.0.0.1:1',
    apiKey: 'key',
    clock: { sleep: async () => {} },
    fetch: async (url, { method = 'GET' } = {}) => {
      const status = statuses.shift() ?? 200;
      const isBatch = String(url).includes('batch=1');
      asked.push(`${method} ${new URL(String(url)).pathname}`);
      return Response.json(isBatch ? [body(status)] : body(status), { status });
    },
  });
  return { client: client as unknown as Record<string, AnyOperation>, asked };
}

test('without the contract of a store, a client calls any operation, and repeats it where it only reads', async () => {
  const { client, asked } = connect(500, 200);
  expect(await client.getBoat?.query({ id: 1 })).toEqual({ id: 1 });
  expect(asked).toEqual(['GET /trpc/getBoat', 'GET /trpc/getBoat']);
});

test('a mutation is not repeated unless the contract says that it takes an Idempotency-Key', async () => {
  const { client, asked } = connect(500, 200);
  await expect(client.createBoat?.mutate({})).rejects.toMatchObject({ code: 'internal_error', status: 500 });
  expect(asked).toEqual(['POST /trpc/createBoat']);
});
