import { isDeepStrictEqual } from 'node:util';
import { isForSale, LAST_SEEDED, PET_COUNT, type Pet, seededPet } from './catalogue.js';
import { Sales } from './sales.js';

/** A pet that the service was asked to create: once, or several times under one Idempotency-Key. */
export interface Creation {
  readonly pet: Omit<Pet, 'id'>;
  readonly hasKey: boolean;
  /** Set by the first response that acknowledges it */
  id: number | undefined;
  /** Whether a response was lost or a 503, so that the pet may be stored without an acknowledgement */
  mayBeStored: boolean;
}

/** What the catalogue must contain, as far as a client can know it: the pets before the soak, and those it creates. */
export class Ledger {
  readonly sales = new Sales();
  readonly #creations = new Map<string, Creation>();
  readonly #acknowledged = new Map<number, Creation>();
  readonly #ids: number[] = [];

  /** Notes a pet that is about to be created. Its name must be unique. */
  add(pet: Creation['pet'], hasKey: boolean): Creation {
    const creation = { pet, hasKey, id: undefined, mayBeStored: false };
    this.#creations.set(pet.name, creation);
    return creation;
  }

  get creations(): IterableIterator<Creation> {
    return this.#creations.values();
  }

  /** The ids of acknowledged pets */
  get ids(): readonly number[] {
    return this.#ids;
  }

  /** Takes the response to a create. Returns what is wrong with it. */
  acknowledge(creation: Creation, output: unknown): string | undefined {
    const { id } = output as Pet;
    if (!isDeepStrictEqual(output, { id, ...creation.pet })) return 'this is not the pet that was sent';
    if (!Number.isSafeInteger(id) || id <= LAST_SEEDED) return 'the id is not new';
    const owner = this.#acknowledged.get(id);
    if (owner !== undefined && owner !== creation) return `the id belongs to ${owner.pet.name}`;
    if (creation.id !== undefined && creation.id !== id)
      return `the pet was created before, as ${creation.id}`;
    if (owner === undefined) this.#ids.push(id);
    this.#acknowledged.set(id, creation);
    creation.id = id;
    return undefined;
  }

  /** Returns what is wrong with a pet that was read by a request that was sent then. */
  check(pet: unknown, sentAt: number): string | undefined {
    const { id, name } = pet as Pet;
    if (isForSale(id)) return this.sales.checkPet(pet as Pet, sentAt);
    if (id <= PET_COUNT) {
      return isDeepStrictEqual(pet, seededPet(id)) ? undefined : `pet ${id} has another content`;
    }
    const creation = this.#creations.get(name);
    if (creation === undefined) return `nobody sent pet ${id}`;
    if (!isDeepStrictEqual(pet, { id, ...creation.pet })) return `pet ${id} differs from what was sent`;
    const owner = this.#acknowledged.get(id) ?? creation;
    if (owner !== creation || (creation.id ?? id) !== id) return `pet ${id} has another id than acknowledged`;
    return undefined;
  }
}
