import { NEXT_STATUSES, OPEN_STATUSES, ORDER_STATUSES } from '../../src/order-progress.js';
import type { Order } from '../../src/orders/schema.js';
import { type Call, checkNextLink, DEFAULT_LIMIT, MAX_LIMIT, noteAll } from './call.js';
import { pickForSale } from './catalogue.js';
import type { Ledger } from './ledger.js';
import { pick, random, randomInteger } from './random.js';
import type { Placement, Sales } from './sales.js';

export function createOrder({ sales }: Ledger, { hasKey = false } = {}): Call {
  return place(sales, sales.addPlacement(pickForSale(), hasKey));
}

function place(sales: Sales, placement: Placement): Call {
  const { petId } = placement;
  const { status } = sales.pet(petId);
  // An earlier attempt may have placed the order before this one is sent.
  const isSure = placement.attempts === 0;
  const write = status.begin('pending', isSure);
  placement.attempts += 1;
  return {
    operation: 'createOrder',
    input: { petId },
    check(output, sentAt) {
      const isRepetition = placement.placed !== undefined;
      const problem = sales.acknowledge(placement, output);
      if (problem !== undefined) return problem;
      if (isSure && !isRepetition && !status.mayBe('available', sentAt))
        return 'the animal was not available';
      write[isRepetition ? 'discard' : 'acknowledge']();
      return undefined;
    },
    checkHeaders: ({ location }, output) =>
      location === `/v1/store/orders/${(output as Order).id}`
        ? undefined
        : 'Location is not that of the order',
    checkRefusal: (sentAt) =>
      status.mayHaveBeen((each) => each !== 'available', sentAt) ? undefined : 'the animal was available',
    noteLost() {
      placement.mayBeStored = true;
      write.lose();
    },
    noteRefused() {
      placement.attempts -= 1;
      write.discard();
    },
    again: () => place(sales, placement),
  };
}

/** Places an order as long as there is none. */
export function updateOrder(ledger: Ledger): Call {
  const { sales } = ledger;
  const orderId = sales.pickOrder(random() < 0.2);
  if (orderId === undefined) return createOrder(ledger);
  const status = pick(NEXT_STATUSES);
  const order = sales.order(orderId);
  const writes = sales.beginOrderChange({ orderId, status });
  return {
    operation: 'updateOrder',
    input: { orderId, status },
    check(output, sentAt) {
      const changed = output as Order;
      if (changed.id !== orderId || changed.status !== status) return 'this is not what was sent';
      noteAll(writes, 'acknowledge');
      return sales.checkOrder(output, sentAt);
    },
    checkRefusal(sentAt) {
      sales.noteClosed(orderId);
      return order?.status.mayHaveBeen((each) => !OPEN_STATUSES.includes(each), sentAt)
        ? undefined
        : 'the order was open';
    },
    noteLost: () => noteAll(writes, 'lose'),
    noteRefused: () => noteAll(writes, 'discard'),
  };
}

export function getOrder(ledger: Ledger): Call {
  const { sales } = ledger;
  const orderId = sales.pickOrder(random() < 0.5);
  if (orderId === undefined) return listOrders(ledger);
  return {
    operation: 'getOrder',
    input: { orderId },
    check: (output, sentAt) =>
      (output as Order).id === orderId
        ? sales.checkOrder(output, sentAt)
        : 'this is not the order that was asked for',
  };
}

type Filters = { readonly [Name in 'petId' | 'status']: Order[Name] | undefined };

export function listOrders({ sales }: Ledger): Call {
  const petId = pick([undefined, pickForSale()]);
  const status = pick([undefined, pick(ORDER_STATUSES)]);
  const order = pick([undefined, 'oldest', 'newest'] as const);
  const limit = pick([undefined, randomInteger(1, MAX_LIMIT)]);
  const size = limit ?? DEFAULT_LIMIT;
  const known = sales.recentIds(petId);
  const cursor = known.length > 0 && random() < 0.5 ? pick(known) : undefined;
  const isAfter = (id: number, other: number | undefined) =>
    other === undefined || (order === 'newest' ? id < other : id > other);
  // A page of all statuses shows every order that was known before it was asked for.
  const expected = status === undefined ? known.filter((id) => isAfter(id, cursor)) : [];
  const members = Object.entries({ petId, status, order, limit, cursor });
  return {
    operation: 'listOrders',
    input: Object.fromEntries(members.filter(([, value]) => value !== undefined)),
    check(output, sentAt) {
      if (!Array.isArray(output) || output.length > size) return `this is not a page of at most ${size}`;
      const page: readonly Order[] = output;
      const ids = page.map(({ id }) => id);
      const unsorted = ids.find((id, index) => !isAfter(id, ids[index - 1] ?? cursor));
      if (unsorted !== undefined) return `order ${unsorted} is not after the one before it`;
      const isMissing = (id: number) => !ids.includes(id) && (ids.length < size || !isAfter(id, ids.at(-1)));
      const missing = expected.find(isMissing);
      if (missing !== undefined) return `order ${missing} is missing on this page`;
      return page
        .map((each) => checkFilters(each, { petId, status }) ?? sales.checkOrder(each, sentAt))
        .find((problem) => problem !== undefined);
    },
    checkHeaders(headers, output) {
      const ids = (output as readonly Order[]).map(({ id }) => id);
      const hasMore = ids.length === size && expected.some((id) => isAfter(id, ids.at(-1)));
      return checkNextLink(headers, ids, { size, hasMore });
    },
  };
}

function checkFilters({ id, petId, status }: Order, filters: Filters): string | undefined {
  if (petId !== (filters.petId ?? petId)) return `order ${id} is of another animal`;
  return status === (filters.status ?? status) ? undefined : `order ${id} has another status`;
}
