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

export interface Category {
  readonly label: string;
  readonly kind: Kind;
}

/** The categories of the sample catalogue. For the service, a category is just a number. */
export const CATEGORIES: ReadonlyMap<number, Category> = new Map<number, Category>([
  [1, { label: 'Dogs', kind: 'dog' }],
  [2, { label: 'Cats', kind: 'cat' }],
  [3, { label: 'Birds', kind: 'bird' }],
  [4, { label: 'Fish', kind: 'fish' }],
  [5, { label: 'Small mammals', kind: 'rabbit' }],
  [6, { label: 'Reptiles', kind: 'tortoise' }],
]);

export function categoryOf(categoryId: number): Category {
  return CATEGORIES.get(categoryId) ?? { label: `Category ${categoryId}`, kind: 'paw' };
}
