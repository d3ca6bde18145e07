import { type Case, PET_COUNT, STATUSES } from './case.js';

/*
 * The cases that concern an animal and its orders. Each request is for another animal, and changes something. When they have been
 * sent, the animals get back the statuses that they had.
 */

/** The status that an animal of the catalogue has at first */
const FIRST_STATUS = `('{${STATUSES}}'::pet_status[])[id % ${STATUSES.length} + 1]`;

/** Each pending animal gets an order, whose id is the one before the animal's: the `n` of a request. */
const PLACE_ORDERS = `
  INSERT INTO orders (id, pet_id) OVERRIDING SYSTEM VALUE
    SELECT id - 1, id FROM pets WHERE status = 'pending' AND id BETWEEN 2 AND ${PET_COUNT} ORDER BY id;
  ANALYZE orders`;

const UNDO = `
  TRUNCATE orders;
  UPDATE pets SET status = ${FIRST_STATUS} WHERE id <= ${PET_COUNT} AND status <> ${FIRST_STATUS}`;

const shared = {
  key: 'unlimited',
  isDistinct: true,
  undo: UNDO,
} satisfies Partial<Case>;

export const orderCases = {
  /** Of an animal without an order, while others have one. */
  petStatus: {
    ...shared,
    name: "change an animal's status",
    method: 'PATCH',
    path: (n) => `/v1/pets/${n}`,
    body: (n) => JSON.stringify({ status: toPetStatus(n) }),
    status: 200,
    prepare: PLACE_ORDERS,
    expected: (n) => [`"id":${n},`, `"status":"${toPetStatus(n)}"`],
  },
  order: {
    ...shared,
    name: 'order an animal',
    method: 'POST',
    path: () => '/v1/store/orders',
    body: (n) => JSON.stringify({ petId: n }),
    status: 201,
    expected: (n) => [`"petId":${n},`, '"status":"placed"'],
  },
  /** One in three approves a placed order, one delivers, and one cancels. The animal changes with two of them. */
  updateOrder: {
    ...shared,
    name: 'change an order',
    method: 'PATCH',
    path: (n) => `/v1/store/orders/${n}`,
    body: (n) => JSON.stringify({ status: toOrderStatus(n) }),
    status: 200,
    prepare: PLACE_ORDERS,
    expected: (n) => [`"id":${n},"petId":${n + 1},"status":"${toOrderStatus(n)}"`],
  },
} satisfies Record<string, Case>;

/** `n` is a multiple of three. */
const toTurn = <T>(n: number, values: readonly T[]) => values[(n / STATUSES.length) % values.length];
const toPetStatus = (n: number) => toTurn(n, ['pending', 'sold']);
const toOrderStatus = (n: number) => toTurn(n, ['approved', 'delivered', 'cancelled']);
