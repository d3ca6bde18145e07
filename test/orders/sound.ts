import { execute } from '@animal-store/platform/testing';
import { expect } from 'vitest';

/** Animals whose status contradicts their orders: where nobody else makes an animal pending, it is while it has an open one. */
const CONTRADICTIONS = `
  SELECT pets.id, pets.status, count(orders.id) AS open
  FROM pets LEFT JOIN orders ON orders.pet_id = pets.id AND orders.status IN ('placed', 'approved')
  GROUP BY pets.id HAVING count(orders.id) <> (pets.status = 'pending')::int`;
const DEADLOCKS =
  'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database() AND deadlocks > 0';

/** Expects that no animal has two open orders or a status that contradicts them, and that no transactions have waited for each other. */
export async function expectSound(databaseUrl: string): Promise<void> {
  expect(await execute(databaseUrl, CONTRADICTIONS)).toEqual([]);
  expect(await execute(databaseUrl, DEADLOCKS)).toEqual([]);
}
