import Fastify, { type FastifyInstance } from 'fastify';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { limitRequestsPerTick, type RequestQueue } from '../../src/http/request-queue.js';

let app: FastifyInstance;
let queue: RequestQueue;
/** The ids of the requests, in the order in which they were started */
let order: string[];
/** How many requests each tick has started */
let perTick: number[];

beforeEach(() => {
  app = Fastify();
  order = [];
  perTick = [];
  queue = limitRequestsPerTick(app, ({ headers }) => headers['x-preferred'] !== undefined);
  let isTickOpen = false;
  app.get('/:id', async (request) => {
    if (!isTickOpen) {
      isTickOpen = true;
      perTick.push(0);
      setImmediate(() => {
        isTickOpen = false;
      });
    }
    perTick.push((perTick.pop() ?? 0) + 1);
    order.push((request.params as { id: string }).id);
    return 'done';
  });
});
afterEach(() => app.close());

function send(count: number, name: string, headers: Record<string, string> = {}): Promise<unknown>[] {
  return Array.from({ length: count }, (_, n) => app.inject({ url: `/${name}-${n}`, headers }));
}

test('however many requests arrive at once, a tick starts a few of them, in the order of their arrival', async () => {
  await app.ready();
  const responses = Promise.all(send(500, 'a'));
  await responses;
  expect(order).toEqual(Array.from({ length: 500 }, (_, n) => `a-${n}`));
  expect(Math.max(...perTick)).toBeLessThanOrEqual(64);
  expect(queue.delayMs).toBe(0);
});

test('preferred requests overtake the others, which are not stuck meanwhile', async () => {
  await app.ready();
  await Promise.all([...send(400, 'other'), ...send(200, 'preferred', { 'x-preferred': 'yes' })]);
  expect(order).toHaveLength(600);
  const lastPreferred = order.lastIndexOf('preferred-199');
  const overtaken = order.slice(lastPreferred).length;
  expect(overtaken).toBeGreaterThan(250);
  const between = order.slice(order.indexOf('preferred-0'), lastPreferred);
  expect(between.filter((id) => id.startsWith('other')).length).toBeGreaterThan(5);
});
