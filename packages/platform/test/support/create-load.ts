import { type Caller, post } from '@animal-store/platform/testing';
import { expect } from 'vitest';
import { create, newItem, TABLE, TEXT } from '#operations-under-test';
import type { PostgresServer } from './postgres-server.js';

const STREAMS = 8;
/** Creates that go on while the database fails. */
export interface Load {
  /** When the last response that was not a success arrived, by performance.now() */
  readonly lastFailureAt: number;
  /** Waits until so many more creates are acknowledged. */
  untilAcknowledged(count: number): Promise<void>;
  /** Waits until so many more creates got a 503. */
  untilUnavailable(count?: number): Promise<void>;
  /** How many creates were acknowledged, and how many responses were a 503 */
  summary(): string;
  stop(): Promise<void>;
  /** Every acknowledged create is stored, those that were repeated once; every response was a success or a 503. */
  expectNothingLost(server: PostgresServer): Promise<void>;
}

/**
 * Creates items over both protocols until it is stopped. Half of the streams repeat a create with its Idempotency-Key
 * until it succeeds; the others send each one once.
 */
export function startLoad(call: Caller): Load {
  /** `id name` */
  const acknowledged: string[] = [];
  const failures: string[] = [];
  let lastFailureAt = 0;
  let isOver = false;
  const send = async (stream: number, n: number): Promise<boolean> => {
    const isRepeated = stream % 2 === 0;
    const name = `${stream}-${n} ${isRepeated ? 'repeated' : 'once'}`;
    const path = stream < STREAMS / 2 ? create.path : create.trpc;
    const init = post(newItem(name), isRepeated ? { 'idempotency-key': `${stream}-${n}` } : {});
    const { status, body } = await call(path, init);
    const isCreated = status === 200 || status === 201;
    if (isCreated) acknowledged.push(`${body.id ?? body.result.data.id} ${name}`);
    else lastFailureAt = performance.now();
    if (!isCreated) failures.push(String(status));
    return isCreated || !isRepeated;
  };
  const streams = Array.from({ length: STREAMS }, async (_, stream) => {
    for (let n = 0; !isOver; n += 1) while (!(await send(stream, n)) && !isOver);
  });
  const running = Promise.all(streams);
  const until = (condition: () => boolean) =>
    Promise.race([running, expect.poll(condition, { interval: 10 }).toBe(true)]);
  return {
    get lastFailureAt() {
      return lastFailureAt;
    },
    async untilAcknowledged(count) {
      const enough = acknowledged.length + count;
      await until(() => acknowledged.length >= enough);
    },
    async untilUnavailable(count = 1) {
      const enough = failures.length + count;
      await until(() => failures.length >= enough);
    },
    summary: () => `${acknowledged.length} creates acknowledged, ${failures.length} times 503`,
    async stop() {
      isOver = true;
      await running;
    },
    async expectNothingLost(server) {
      expect([...new Set(failures)]).toEqual(['503']);
      const rows = await server.query<{ id: string; name: string }>(
        `SELECT id, ${TEXT} AS name FROM ${TABLE}`,
      );
      const stored = new Set(rows.map(({ id, name }) => `${id} ${name}`));
      expect(acknowledged.filter((item) => !stored.has(item))).toEqual([]);
      const repeated = rows.filter(({ name }) => name.endsWith('repeated'));
      expect(new Set(repeated.map(({ name }) => name)).size).toBe(repeated.length);
    },
  };
}
