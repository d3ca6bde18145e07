import { PET_COLUMNS, pool } from './baseline-database.js';
import { ApiError, parseJson, readId } from './baseline-input.js';
import type { Headers } from './baseline-limits.js';

/*
 * The changes of bench/baseline.ts that concern an animal and its orders. Each is one statement, which is a transaction of
 * its own. Another one asks why, if it has changed nothing.
 */

const NEXT_STATUSES = ['approved', 'delivered', 'cancelled'];
const ORDER_COLUMNS = 'id, pet_id AS "petId", status, created_at AS "createdAt"';

/** Its UPDATE waits for others of the pet. */
const PLACE = `WITH pet AS (UPDATE pets SET status = 'pending' WHERE id = $1 AND status = 'available' RETURNING id)
  INSERT INTO orders (pet_id) SELECT id FROM pet RETURNING ${ORDER_COLUMNS}`;

export async function placeOrder(body: string, headers: Headers) {
  const { petId } = (parseJson(body) as { petId?: unknown } | null) ?? {};
  if (!Number.isSafeInteger(petId)) {
    throw new ApiError(400, 'invalid_request', 'petId must be an integer within plus or minus 2^53-1.');
  }
  const { rows } = await pool.query<{ id: number }>({ name: 'place', text: PLACE, values: [petId] });
  if (rows[0] === undefined) throw new ApiError(409, 'pet_not_available', 'The animal is not available.');
  headers.Location = `/v1/store/orders/${rows[0].id}`;
  return { status: 201, body: rows[0] };
}

/** It locks the order, then the pet. No deadlock comes of that, because nothing that has locked a pet waits for its order. */
const CHANGE = `WITH changed AS (
    UPDATE orders SET status = $2 WHERE id = $1 AND status IN ('placed', 'approved') AND status <> $2
    RETURNING ${ORDER_COLUMNS}
  ), pet AS (
    UPDATE pets SET status = CASE $2 WHEN 'delivered' THEN 'sold'::pet_status ELSE 'available' END
    FROM changed WHERE pets.id = "petId" AND $2 IN ('delivered', 'cancelled')
  )
  SELECT * FROM changed`;

export async function changeOrder(text: string, body: string) {
  const { status } = (parseJson(body) as { status?: unknown } | null) ?? {};
  if (!NEXT_STATUSES.includes(status as string)) {
    throw new ApiError(400, 'invalid_request', `status must be one of ${NEXT_STATUSES.join(', ')}.`);
  }
  const id = readId(text);
  const order = id === undefined ? undefined : ((await change(id, status)) ?? (await find(id)));
  if (order === undefined) throw new ApiError(404, 'not_found', `There is no order with the id ${text}.`);
  if (order.status !== status) throw new ApiError(409, 'order_closed', 'The order is closed.');
  return { status: 200, body: order };
}

type Order = { readonly id: number; readonly status: string };

const change = async (id: number, status: unknown): Promise<Order | undefined> =>
  (await pool.query({ name: 'change-order', text: CHANGE, values: [id, status] })).rows[0];

const find = async (id: number): Promise<Order | undefined> =>
  (await pool.query(`SELECT ${ORDER_COLUMNS} FROM orders WHERE id = $1`, [id])).rows[0];

const OPEN_ORDER = `SELECT FROM orders WHERE pet_id = $1 AND status IN ('placed', 'approved')`;

/**
 * If it has to wait for another change of the pet, it then sees the pet as that has left it, but orders as they were when the
 * statement began. So it changes no pet whose xmin tells that it has been changed meanwhile.
 */
const CHANGE_STATUS = `UPDATE pets SET category_id = coalesce($2, category_id), status = $3
  WHERE id = $1 AND (status = $3 OR
    xmin = (SELECT xmin FROM pets WHERE id = $1) AND NOT EXISTS (${OPEN_ORDER}))
  RETURNING ${PET_COLUMNS}`;

/** Returns undefined if there is no such pet. */
export async function changeStatus(id: number, categoryId: unknown, status: unknown): Promise<unknown> {
  for (;;) {
    const changed = await pool.query({
      name: 'change-status',
      text: CHANGE_STATUS,
      values: [id, categoryId, status],
    });
    if (changed.rowCount === 1) return changed.rows[0];
    const reasons = `SELECT EXISTS (${OPEN_ORDER}) AS "hasOpenOrder" FROM pets WHERE id = $1`;
    const { rows } = await pool.query<{ hasOpenOrder: boolean }>(reasons, [id]);
    if (rows[0] === undefined) return undefined;
    if (rows[0].hasOpenOrder) throw new ApiError(409, 'pet_has_open_order', 'The animal has an open order.');
  }
}
