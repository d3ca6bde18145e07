/**
 * What the tests call of a store, whichever it is: a list with a filter, a create that takes an Idempotency-Key, a read of one by
 * its id, an operation that Prisma runs, and a second list, nested or not, that needs another scope and shows a time.
 * `#operations-under-test` leads to this file for the platform's tests, and for others to that of the animals.
 */

import { findOperation } from '../support/find-operation.js';
import type { PrismaClient } from './definition/generated/client.js';
import { appRouter, resources } from './router.js';

export { definition } from './definition/definition.js';
export { newParcel as newItemSchema, type Parcel as Item, parcel as itemSchema } from './parcels/schema.js';
export { createParcelStore as createItemStore, type ParcelStore as ItemStore } from './parcels/store.js';
export { ApiError, type Database } from './store.js';
export { appRouter, resources };

/** What a create needs. The text tells items apart; `n`, an integer from 1 on, is for NUMBER, if there is one. */
export const newItem = (name: string, n = 1) => ({ label: name, shelf: n });

export const list = {
  ...findOperation(appRouter, 'listParcels'),
  /** The name of its filter, which a statement and an index are called after, too, */
  filterName: 'status',
  /** and a value that no item has without being given it: as members of an item, and as a query. */
  filter: { status: 'lost' },
  filterQuery: 'status=lost',
} as const;
export const create = { ...findOperation(appRouter, 'createParcel'), body: newItem('Rex') };
export const read = {
  ...findOperation(appRouter, 'getParcel'),
  pathOf: (id: unknown) => `/v1/parcels/${id}`,
  inputOf: <Id>(id: Id) => ({ parcelId: id }),
};
/** The path and the address over tRPC are of a list as such, so that of a nested one they name its parent. */
const scans = findOperation(appRouter, 'listScans');
export const otherList = {
  ...scans,
  path: scans.path.replace('{parcelId}', '1'),
  trpc: `${scans.trpc}?input=${encodeURIComponent('{"parcelId":1}')}`,
  /** What the input needs: of a nested list, the id of its parent, */
  input: { parcelId: 1 },
  /** and what other operations of the store need that neither `create` nor `read` has. */
  furtherInput: {},
};

/** The table of the items, the member and the column of their text, and the table of the other list */
export const TABLE = 'parcels';
export const TEXT = 'label';
/** A member that is an integer, or else TEXT */
export const NUMBER = 'shelf';
/** The least that it may be */
export const LEAST_NUMBER = -(2 ** 53 - 1);
export const OTHER_TABLE = 'scans';
/** The types of the store's own that columns of TABLE have */
export const TYPES = ['parcel_status'];
/** Prisma's name of its model, and a query of it */
export const OTHER_MODEL = 'Scan';
export const readOthers = (prisma: PrismaClient) => prisma.scan.findMany({ take: 1 });

/** Lets the example of every body be sent once more, where the state of an item allows that only once: parcel 8 stays collected. */
export const REUSE_EXAMPLES = `
  UPDATE ${TABLE} SET status = (CASE id WHEN 8 THEN 'collected' ELSE 'waiting' END)::parcel_status`;

/** What the state of an item refuses after INSERT_OTHERS and REUSE_EXAMPLES, by the path relative to the version. */
export const REFUSED: readonly (readonly [operation: string, path: string, change: object])[] = [
  ['updateParcel', '/parcels/8', { shelf: 2 }],
  ['collectParcel', '/parcels/8/collect', {}],
];

/** Adds an item whose text is an SQL expression, or several with `FROM generate_series(…)` behind it. */
export const insertSql = (text: string, schema = 'public') =>
  `INSERT INTO ${schema}.${TABLE} (label, shelf) SELECT ${text}, 1`;
/** Adds one to the other list, of one parent if it is nested, for each item. */
export const INSERT_OTHERS = `INSERT INTO ${OTHER_TABLE} (parcel_id) SELECT 1 FROM ${TABLE}`;
/** Adds enough of both for the example of every body that names one. */
export const INSERT_EXAMPLES = `${insertSql("'Item ' || n")} FROM generate_series(1, 9) n; ${INSERT_OTHERS}`;
