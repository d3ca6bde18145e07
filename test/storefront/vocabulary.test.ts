import { expect, test } from 'vitest';
import { ORDER_ACTIONS } from '../../examples/storefront/src/vocabulary.js';
import { NEXT_STATUSES, ORDER_STATUSES, statusesBefore } from '../../src/order-progress.js';

test('an order has a button for each status that may follow its own, and no other', () => {
  const following = ORDER_STATUSES.map((status) => [
    status,
    NEXT_STATUSES.filter((next) => statusesBefore(next).includes(status)),
  ]);
  expect(ORDER_ACTIONS).toEqual(Object.fromEntries(following));
});
