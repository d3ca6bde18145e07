import { isDeepStrictEqual } from 'node:util';
import { execute } from '@animal-store/platform/testing';
import { OPEN_STATUSES } from '../../src/order-progress.js';
import type { Order } from '../../src/orders/schema.js';
import { LAST_SEEDED, PET_COUNT, type Pet } from './catalogue.js';
import type { Placement, Sales } from './sales.js';

export interface OrderAudit {
  readonly problems: readonly string[];
  readonly orders: number;
  /** Of these, orders that no response acknowledged */
  readonly unacknowledgedOrders: number;
}

/** What the database contains of the animals for sale. */
interface Stored {
  readonly orders: ReadonlyMap<number, Order>;
  readonly pets: readonly Pet[];
  /** What Idempotency-Keys store, in the order of their ids */
  readonly keyed: readonly Order[];
}

/** Compares the orders and their animals, once the service has stopped, with what its responses promised. */
export async function auditOrders(databaseUrl: string, sales: Sales): Promise<OrderAudit> {
  const stored = await readStored(databaseUrl);
  const { orders } = stored;
  const acknowledged = new Set(sales.placements.flatMap(({ placed }) => placed?.id ?? []));
  const unacknowledged = [...orders.values()].filter(({ id }) => !acknowledged.has(id));
  const problems = [
    ...auditAcknowledged(stored, sales),
    ...auditUnacknowledged(unacknowledged, stored, sales),
    ...auditAnimals(stored, sales),
    ...(await auditDeadlocks(databaseUrl)),
  ];
  return { problems, orders: orders.size, unacknowledgedOrders: unacknowledged.length };
}

async function readStored(databaseUrl: string): Promise<Stored> {
  const orders = await execute<Order>(
    databaseUrl,
    `SELECT id::int, pet_id::int AS "petId", status,
      to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS "createdAt"
    FROM orders`,
  );
  const pets = await execute<Pet>(
    databaseUrl,
    `SELECT id::int, name, category_id::int AS "categoryId", status FROM pets WHERE id > $1 AND id <= $2`,
    [PET_COUNT, LAST_SEEDED],
  );
  const keyed = await execute<{ response: Order }>(
    databaseUrl,
    `SELECT response FROM idempotent_creates WHERE operation = 'createOrder' ORDER BY (response ->> 'id')::int`,
  );
  return {
    orders: new Map(orders.map((order) => [order.id, order])),
    pets,
    keyed: keyed.map(({ response }) => response),
  };
}

/** Every acknowledged order is there, as its key has it, and with a status that it may have. */
function auditAcknowledged({ orders, keyed }: Stored, sales: Sales): string[] {
  const ofKeys = new Map(keyed.map((order) => [order.id, order]));
  const lost = sales.placements.flatMap(({ placed, hasKey, petId }) => {
    if (placed === undefined) return [];
    if (orders.get(placed.id)?.petId !== petId) return `order ${placed.id} was lost`;
    if (isDeepStrictEqual(ofKeys.get(placed.id), hasKey ? placed : undefined)) return [];
    return `order ${placed.id} does not match what its Idempotency-Key stores`;
  });
  const different = [...orders.values()].flatMap((order) =>
    sales.order(order.id) === undefined ? [] : (sales.checkOrder(order, performance.now()) ?? []),
  );
  return [...lost, ...different];
}

/** Of each animal, no more orders are stored than creates were lost, with a key and without one. */
function auditUnacknowledged(unacknowledged: readonly Order[], { orders, keyed }: Stored, sales: Sales) {
  const problems: string[] = [];
  const ofKeys = new Set<number>();
  for (const { id, petId, createdAt } of keyed) {
    const order = orders.get(id);
    if (ofKeys.has(id)) problems.push(`two Idempotency-Keys store order ${id}`);
    if (order?.petId !== petId || order.createdAt !== createdAt)
      problems.push(`an Idempotency-Key stores order ${id}, which is not like that`);
    ofKeys.add(id);
  }
  const toKind = (petId: number, hasKey: boolean) => `${petId} ${hasKey ? 'with' : 'without'} a key`;
  const mayBeStored = ({ placed, mayBeStored: isLost }: Placement) => placed === undefined && isLost;
  const lost = count(sales.placements.filter(mayBeStored), (each) => toKind(each.petId, each.hasKey));
  const stored = count(unacknowledged, ({ id, petId }) => toKind(petId, ofKeys.has(id)));
  for (const [kind, number] of stored) {
    const possible = lost.get(kind) ?? 0;
    if (number > possible)
      problems.push(`${number} orders of pet ${kind} were not acknowledged, and ${possible} creates lost`);
  }
  return problems;
}

/** An animal has one open order at most, and is pending then. All of its members are what was sent last. */
function auditAnimals({ orders, pets }: Stored, sales: Sales): string[] {
  const open = [...orders.values()].filter(({ status }) => OPEN_STATUSES.includes(status));
  const openByPet = count(open, ({ petId }) => petId);
  return pets.flatMap((pet) => {
    const number = openByPet.get(pet.id) ?? 0;
    if (number > 1) return `pet ${pet.id} has ${number} open orders`;
    if (number === 1 && pet.status !== 'pending')
      return `pet ${pet.id} has an open order and is ${pet.status}`;
    return sales.checkPet(pet, performance.now()) ?? [];
  });
}

async function auditDeadlocks(databaseUrl: string): Promise<string[]> {
  const rows = await execute(
    databaseUrl,
    'SELECT FROM pg_stat_database WHERE datname = current_database() AND deadlocks > 0',
  );
  return rows.map(() => 'transactions have waited for each other');
}

function count<Item, Kind>(items: readonly Item[], toKind: (item: Item) => Kind): Map<Kind, number> {
  const counts = new Map<Kind, number>();
  for (const item of items) counts.set(toKind(item), (counts.get(toKind(item)) ?? 0) + 1);
  return counts;
}
