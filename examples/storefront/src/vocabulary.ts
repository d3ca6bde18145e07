import type { Order, PetStatus } from '@animal-store/client';

export type OrderStatus = Order['status'];

/** The label of each status. A status that the service adds or removes fails the type check here. */
export const STATUS_LABELS = {
  available: 'Available',
  pending: 'Pending',
  sold: 'Sold',
} as const satisfies Record<PetStatus, string>;

export const STATUSES = Object.keys(STATUS_LABELS) as PetStatus[];

export const ORDER_LABELS = {
  placed: 'Placed',
  approved: 'Approved',
  delivered: 'Delivered',
  cancelled: 'Cancelled',
} as const satisfies Record<OrderStatus, string>;

export const ORDER_STATUSES = Object.keys(ORDER_LABELS) as OrderStatus[];

export type NextStatus = Exclude<OrderStatus, 'placed'>;

/** What a clerk may do next with an order of each status. */
export const ORDER_ACTIONS = {
  placed: ['approved', 'delivered', 'cancelled'],
  approved: ['delivered', 'cancelled'],
  delivered: [],
  cancelled: [],
} as const satisfies Record<OrderStatus, readonly NextStatus[]>;

export type Kind = 'dog' | 'cat' | 'bird' | 'fish' | 'rabbit' | 'tortoise' | 'paw';

/** The drawing of a category, by a word in its name */
const KINDS: readonly (readonly [RegExp, Kind])[] = [
  [/\bdog/i, 'dog'],
  [/\bcat/i, 'cat'],
  [/bird/i, 'bird'],
  [/fish/i, 'fish'],
  [/mammal|rabbit/i, 'rabbit'],
  [/reptile|tortoise/i, 'tortoise'],
];

export const DRAWN_KINDS = KINDS.map(([, kind]) => kind);

export function kindOf(name: string): Kind {
  return KINDS.find(([word]) => word.test(name))?.[1] ?? 'paw';
}
