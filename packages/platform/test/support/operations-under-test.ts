/**
 * What the tests call of a store, whichever it is: a list with a filter, a create that takes an Idempotency-Key, a read of one by
 * its id, an operation that Prisma runs, and a second list, nested or not, that needs another scope and shows a time.
 * `#operations-under-test` leads to this file for the platform's tests, and for others to that of the animals.
 */

import type { PrismaClient } from '../../../../examples/boatyard/src/generated/client.js';
import { appRouter, resources } from '../../../../examples/boatyard/src/router.js';
import { findOperation } from './find-operation.js';

export {
  type Boat as Item,
  boat as itemSchema,
  newBoat as newItemSchema,
} from '../../../../examples/boatyard/src/boats/schema.js';
export {
  type BoatStore as ItemStore,
  createBoatStore as createItemStore,
} from '../../../../examples/boatyard/src/boats/store.js';
export { definition } from '../../../../examples/boatyard/src/definition.js';
export { Prisma } from '../../../../examples/boatyard/src/generated/client.js';
export { ApiError, type Database } from '../../../../examples/boatyard/src/store.js';
export { appRouter, resources };

/** What a create needs. The text tells items apart; `n`, an integer from 1 on, is for NUMBER, if there is one. */
export const newItem = (name: string, n = 1) => ({ name, berth: n });

export const list = {
  ...findOperation(appRouter, 'listBoats'),
  /** The name of its filter, which a statement and an index are called after, too, */
  filterName: 'status',
  /** and a value that no item has without being given it: as members of an item, and as a query. */
  filter: { status: 'laid_up' },
  filterQuery: 'status=laid_up',
} as const;
export const create = { ...findOperation(appRouter, 'createBoat'), body: newItem('Rex') };
export const read = {
  ...findOperation(appRouter, 'getBoat'),
  pathOf: (id: unknown) => `/v1/boats/${id}`,
  inputOf: <Id>(id: Id) => ({ boatId: id }),
};
/** The path and the address over tRPC are of a list as such, so that of a nested one they name its parent. */
const moves = findOperation(appRouter, 'listMoves');
export const otherList = {
  ...moves,
  path: moves.path.replace('{boatId}', '1'),
  trpc: `${moves.trpc}?input=${encodeURIComponent('{"boatId":1}')}`,
  /** What the input needs: of a nested list, the id of its parent, */
  input: { boatId: 1 },
  /** and what other operations of the store need that neither `create` nor `read` has. */
  furtherInput: {},
};

/** The table of the items, the member and the column of their text, and the table of the other list */
export const TABLE = 'boats';
export const TEXT = 'name';
/** A member that is an integer, or else TEXT */
export const NUMBER = 'berth';
/** The least that it may be */
export const LEAST_NUMBER = -(2 ** 53 - 1);
export const OTHER_TABLE = 'moves';
/** The types of the store's own that columns of TABLE have */
export const TYPES = ['boat_status'];
/** Prisma's name of its model, and a query of it */
export const OTHER_MODEL = 'Move';
export const readOthers = (prisma: PrismaClient) => prisma.move.findMany({ take: 1 });

/** Lets the example of every body be sent once more, where the state of an item allows that only once: boat 8 stays sold. */
export const REUSE_EXAMPLES = `
  UPDATE ${TABLE} SET status = (CASE id WHEN 8 THEN 'sold' ELSE 'for_sale' END)::boat_status`;

/** What the state of an item refuses after INSERT_OTHERS and REUSE_EXAMPLES, by the path relative to the version. */
export const REFUSED: readonly (readonly [operation: string, path: string, change: object])[] = [
  ['updateBoat', '/boats/8', { berth: 2 }],
  ['buyBoat', '/boats/8/buy', {}],
];

/** Adds an item whose text is an SQL expression, or several with `FROM generate_series(…)` behind it. */
export const insertSql = (text: string, schema = 'public') =>
  `INSERT INTO ${schema}.${TABLE} (name, berth) SELECT ${text}, 1`;
/** Adds one to the other list, of one parent if it is nested, for each item. */
export const INSERT_OTHERS = `INSERT INTO ${OTHER_TABLE} (boat_id) SELECT 1 FROM ${TABLE}`;
/** Adds enough of both for the example of every body that names one. */
export const INSERT_EXAMPLES = `${insertSql("'Item ' || n")} FROM generate_series(1, 9) n; ${INSERT_OTHERS}`;
