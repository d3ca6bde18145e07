/**
 * The life of an order, in one place: which statuses may follow each status, and what the animal becomes. An order is
 * closed when no status may follow, and open otherwise. Like plans.ts, this file imports nothing.
 *
 * An animal has at most one open order. PostgreSQL ensures this by the index ONE_OPEN_ORDER, whose condition in
 * prisma/schema.prisma names the open statuses.
 */
const PROGRESS = {
  placed: { next: ['approved', 'delivered', 'cancelled'], pet: 'pending' },
  approved: { next: ['delivered', 'cancelled'], pet: 'pending' },
  delivered: { next: [], pet: 'sold' },
  cancelled: { next: [], pet: 'available' },
} as const;

export type OrderStatus = keyof typeof PROGRESS;
export type NextStatus = (typeof PROGRESS)[OrderStatus]['next'][number];

export const ONE_OPEN_ORDER = 'orders_open_pet_id_key';

const entries = Object.entries(PROGRESS) as readonly [
  OrderStatus,
  { readonly next: readonly NextStatus[] },
][];

export const ORDER_STATUSES = entries.map(([status]) => status);
export const OPEN_STATUSES = entries.filter(([, { next }]) => next.length > 0).map(([status]) => status);
/** The statuses that an order may be given: each follows another status. */
export const NEXT_STATUSES = [...new Set(entries.flatMap(([, { next }]) => next))];

/** The statuses from which an order may move to this one. */
export const statusesBefore = (status: NextStatus): OrderStatus[] =>
  entries.filter(([, { next }]) => next.includes(status)).map(([before]) => before);

/** What the animal becomes when its order takes this status. */
export const petStatusWith = (status: OrderStatus) => PROGRESS[status].pet;
