/**
 * The operations of the animals that tests of any store call, under the names of packages/platform/test/support/operations-under-test.ts,
 * which says what they need.
 */

import { findOperation } from '../../packages/platform/test/support/find-operation.js';
import type { PrismaClient } from '../../src/generated/client.js';
import { appRouter, resources } from '../../src/router.js';

export { definition } from '../../src/definition/definition.js';
export { newPet as newItemSchema, type Pet as Item, pet as itemSchema } from '../../src/pets/schema.js';
export { createPetStore as createItemStore, type PetStore as ItemStore } from '../../src/pets/store.js';
export { ApiError, type Database } from '../../src/store.js';
export { appRouter, resources };

/** What a create needs. The text tells items apart; `n`, an integer from 1 on, is for NUMBER, if there is one. */
export const newItem = (name: string, n = 1) => ({ name, categoryId: n });

export const list = {
  ...findOperation(appRouter, 'listPets'),
  /** The name of its filter, which a statement and an index are called after, too, */
  filterName: 'status',
  /** and a value that no item has without being given it: as members of an item, and as a query. */
  filter: { status: 'sold' },
  filterQuery: 'status=sold',
} as const;
export const create = { ...findOperation(appRouter, 'createPet'), body: newItem('Rex') };
export const read = {
  ...findOperation(appRouter, 'getPet'),
  pathOf: (id: unknown) => `/v1/pets/${id}`,
  inputOf: <Id>(id: Id) => ({ petId: id }),
};
/** The path and the address over tRPC are of a list as such, so that of a nested one they name its parent. */
export const otherList = {
  ...findOperation(appRouter, 'listOrders'),
  /** What the input needs: of a nested list, the id of its parent, */
  input: {},
  /** and what other operations of the store need that neither `create` nor `read` has. */
  furtherInput: { orderId: 1 },
};

/** The table of the items, the member and the column of their text, and the table of the other list */
export const TABLE = 'pets';
export const TEXT = 'name';
/** A member that is an integer, or else TEXT */
export const NUMBER = 'categoryId';
/** The least that it may be */
export const LEAST_NUMBER = -(2 ** 53 - 1);
export const OTHER_TABLE = 'orders';
/** The types of the store's own that columns of TABLE have */
export const TYPES = ['pet_status'];
/** Prisma's name of its model, and a query of it */
export const OTHER_MODEL = 'Order';
export const readOthers = (prisma: PrismaClient) => prisma.order.findMany({ take: 1 });

/**
 * Lets the example of every body be sent once more, where the state of an item allows that only once: the animals are
 * available, and of their orders the first is open, as is the one that examples name, and of another animal than they order.
 */
export const REUSE_EXAMPLES = `
  UPDATE ${OTHER_TABLE} SET status = 'cancelled';
  UPDATE ${OTHER_TABLE} SET status = DEFAULT, pet_id = CASE id WHEN 4 THEN 2 ELSE 1 END
    WHERE id IN (4, (SELECT min(id) FROM ${OTHER_TABLE}));
  UPDATE ${TABLE} SET status = DEFAULT`;

/** What the state of an item refuses after INSERT_OTHERS and REUSE_EXAMPLES, by the path relative to the version. */
export const REFUSED: readonly (readonly [operation: string, path: string, change: object])[] = [
  ['updatePet', `/pets/1`, { status: 'sold' }],
  ['updateOrder', `/store/orders/2`, { status: 'approved' }],
];

/** Adds an item whose text is an SQL expression, or several with `FROM generate_series(…)` behind it. */
export const insertSql = (text: string, schema = 'public') =>
  `INSERT INTO ${schema}.${TABLE} (name, category_id) SELECT ${text}, 1`;
/** Adds one to the other list, of one parent if it is nested, for each item. */
export const INSERT_OTHERS = `INSERT INTO ${OTHER_TABLE} (pet_id, status) SELECT id, 'cancelled' FROM ${TABLE}`;
/** Adds enough of both for the example of every body that names one. */
export const INSERT_EXAMPLES = `${insertSql("'Item ' || n")} FROM generate_series(1, 9) n; ${INSERT_OTHERS}`;
