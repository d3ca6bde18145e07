import { isDeepStrictEqual } from 'node:util';
import { execute } from '@animal-store/platform/testing';
import { auditOrders, type OrderAudit } from './audit-orders.js';
import { LAST_SEEDED, type Pet } from './catalogue.js';
import type { Ledger } from './ledger.js';

export interface Audit extends OrderAudit {
  /** Pets that were created during the soak */
  readonly stored: number;
  /** Of these, pets whose creation no response acknowledged */
  readonly unacknowledged: number;
}

interface KeyedRow {
  readonly key: string;
  readonly response: Pet;
}

/** Compares what the database contains, once the service has stopped, with what its responses promised. */
export async function auditDatabase(databaseUrl: string, ledger: Ledger): Promise<Audit> {
  const stored = await execute<{ pet: Pet }>(
    databaseUrl,
    `SELECT json_build_object('id', id, 'name', name, 'categoryId', category_id, 'status', status) AS pet
    FROM pets WHERE id > $1 ORDER BY id`,
    [LAST_SEEDED],
  );
  const pets = stored.map(({ pet }) => pet);
  const keyedRows = await execute<KeyedRow>(
    databaseUrl,
    "SELECT key, response FROM idempotent_creates WHERE operation = 'createPet'",
  );
  const byName = new Map(pets.map((pet) => [pet.name, pet]));
  const problems = pets.flatMap((pet) => {
    const isRepeated = byName.get(pet.name) !== pet;
    const problem = isRepeated ? `pet ${pet.id} was created twice` : ledger.check(pet, performance.now());
    return problem ?? [];
  });
  const keyedPets = new Map(keyedRows.map(({ response }) => [response.id, response]));
  let unacknowledged = 0;
  for (const creation of ledger.creations) {
    const pet = byName.get(creation.pet.name);
    if (creation.id !== undefined && pet === undefined) problems.push(`pet ${creation.id} was lost`);
    if (pet === undefined) continue;
    if (creation.id === undefined) {
      unacknowledged += 1;
      if (!creation.mayBeStored) problems.push(`pet ${pet.id} was created, although its create was denied`);
    }
    if (isDeepStrictEqual(keyedPets.get(pet.id), creation.hasKey ? pet : undefined)) continue;
    problems.push(`pet ${pet.id} does not match what its Idempotency-Key stores`);
  }
  const ids = new Set(pets.map(({ id }) => id));
  for (const { key, response } of keyedRows) {
    if (!ids.has(response.id)) problems.push(`${key} stores pet ${response.id}, which does not exist`);
  }
  const ofOrders = await auditOrders(databaseUrl, ledger.sales);
  problems.push(...ofOrders.problems);
  return { ...ofOrders, problems, stored: pets.length, unacknowledged };
}
