import { isDeepStrictEqual } from 'node:util';
import { OPEN_STATUSES, type OrderStatus, petStatusWith } from '../../src/order-progress.js';
import type { Order, OrderChange } from '../../src/orders/schema.js';
import { isForSale, type Pet, SALE_IDS, seededPet } from './catalogue.js';
import { pick } from './random.js';
import { Register, type Write } from './register.js';

/** What may be read of an animal whose members change */
type SoldPet = { readonly [Member in 'name' | 'categoryId' | 'status']: Register<Pet[Member]> };
export type PetValues = Partial<Omit<Pet, 'id'>>;

/** An order that the service was asked to place: once, or several times under one Idempotency-Key. */
export interface Placement {
  readonly petId: number;
  readonly hasKey: boolean;
  /** The first response that acknowledged it */
  placed: Order | undefined;
  /** Whether a response was lost or a 503, so that the order may be stored without an acknowledgement */
  mayBeStored: boolean;
  /** How many requests may have placed it, or may still */
  attempts: number;
}

interface KnownOrder {
  readonly petId: number;
  readonly createdAt: string;
  readonly status: Register<OrderStatus>;
  /** That were sent for it */
  readonly statuses: Set<OrderStatus>;
}

/** Of the latest orders, so many are expected on pages, and so many are asked for. */
const RECENT_COUNT = 100;

/** What the animals for sale and their orders may be, as far as a client can know it. */
export class Sales {
  readonly placements: Placement[] = [];
  readonly #placementsById = new Map<number, Placement>();
  /** Also those that were only seen on a page, since the response to their create was lost */
  readonly #orders = new Map<number, KnownOrder>();
  readonly #ids: number[] = [];
  readonly #idsByPet = new Map<number, number[]>();
  /** Those that no response has shown closed */
  readonly #open = new Set<number>();
  readonly #pets = new Map<number, SoldPet>(
    SALE_IDS.map((id) => {
      const { name, categoryId, status } = seededPet(id);
      const registers = {
        name: new Register(name),
        categoryId: new Register(categoryId),
        status: new Register(status),
      };
      return [id, registers];
    }),
  );

  pet(id: number): SoldPet {
    const pet = this.#pets.get(id);
    if (pet === undefined) throw new Error(`Animal ${id} is not for sale`);
    return pet;
  }

  order(id: number): KnownOrder | undefined {
    return this.#orders.get(id);
  }

  /** An order that is open, mostly; undefined as long as none is known */
  pickOrder(mayBeClosed: boolean): number | undefined {
    const ids = mayBeClosed ? this.recentIds() : [...this.#open];
    return ids.length > 0 ? pick(ids) : undefined;
  }

  /** The ids of the latest orders that are known, of one animal or of all */
  recentIds(petId?: number): readonly number[] {
    return (petId === undefined ? this.#ids : (this.#idsByPet.get(petId) ?? [])).slice(-RECENT_COUNT);
  }

  addPlacement(petId: number, hasKey: boolean): Placement {
    const placement = { petId, hasKey, placed: undefined, mayBeStored: false, attempts: 0 };
    this.placements.push(placement);
    return placement;
  }

  /** Takes the response to a create. Returns what is wrong with it. */
  acknowledge(placement: Placement, output: unknown): string | undefined {
    const problem = this.checkOrder(output, 0);
    if (problem !== undefined) return problem;
    const placed = output as Order;
    if (placed.petId !== placement.petId) return 'this is an order of another animal';
    if (placed.status !== 'placed') return 'the order has just been placed';
    const owner = this.#placementsById.get(placed.id) ?? placement;
    if (owner !== placement) return 'the order is of another create';
    if (!isDeepStrictEqual(placed, placement.placed ?? placed)) return 'a repetition got another order';
    this.#placementsById.set(placed.id, placement);
    placement.placed = placed;
    return undefined;
  }

  /** Notes the change of an animal that is about to be sent. */
  beginPetChange(petId: number, { name, categoryId, status }: PetValues): Write[] {
    const pet = this.pet(petId);
    return [
      ...(name === undefined ? [] : [pet.name.begin(name)]),
      ...(categoryId === undefined ? [] : [pet.categoryId.begin(categoryId)]),
      ...(status === undefined ? [] : [pet.status.begin(status)]),
    ];
  }

  /** Notes the change of an order that is about to be sent, and that of its animal. */
  beginOrderChange({ orderId, status }: OrderChange): Write[] {
    const order = this.#orders.get(orderId);
    if (order === undefined) throw new Error(`Order ${orderId} is not known`);
    // A repetition changes nothing, and the animal may have been changed since.
    const isFirst = !order.statuses.has(status);
    order.statuses.add(status);
    const petStatus = petStatusWith(status);
    return [order.status.begin(status), this.pet(order.petId).status.begin(petStatus, isFirst)];
  }

  noteClosed(orderId: number): void {
    this.#open.delete(orderId);
  }

  /** Returns what is wrong with an animal for sale that was read by a request that was sent then. */
  checkPet(pet: Pet, sentAt: number): string | undefined {
    const { id, name, categoryId, status } = pet;
    const known = this.pet(id);
    if (!isDeepStrictEqual(pet, { id, name, categoryId, status })) return `pet ${id} has other members`;
    if (!known.name.mayBe(name, sentAt)) return `pet ${id} has not the name that was sent last`;
    if (!known.categoryId.mayBe(categoryId, sentAt))
      return `pet ${id} has not the category that was sent last`;
    return known.status.mayBe(status, sentAt) ? undefined : `pet ${id} cannot have this status`;
  }

  /** Returns what is wrong with an order that was read by a request that was sent then. */
  checkOrder(order: unknown, sentAt: number): string | undefined {
    const { id, status } = order as Order;
    const known = this.#orders.get(id) ?? this.#learn(order as Order);
    if (known === undefined) return `order ${id} is none that was placed`;
    const expected = { id, petId: known.petId, status, createdAt: known.createdAt };
    if (!isDeepStrictEqual(order, expected)) return `order ${id} has another content`;
    if (!known.status.mayBe(status, sentAt)) return `order ${id} cannot have this status`;
    if (!OPEN_STATUSES.includes(status)) this.noteClosed(id);
    return undefined;
  }

  /** Nobody has changed an order that is seen for the first time. Whether its create was sent is for the audit. */
  #learn({ id, petId, status, createdAt }: Order): KnownOrder | undefined {
    const isPossible = Number.isSafeInteger(id) && id > 0 && isForSale(petId) && status === 'placed';
    if (!isPossible || Number.isNaN(Date.parse(createdAt))) return undefined;
    const known = {
      petId,
      createdAt,
      status: new Register<OrderStatus>('placed'),
      statuses: new Set<OrderStatus>(),
    };
    this.#orders.set(id, known);
    this.#ids.push(id);
    const ofPet = this.#idsByPet.get(petId) ?? [];
    this.#idsByPet.set(petId, ofPet);
    ofPet.push(id);
    this.#open.add(id);
    return known;
  }
}
