import { execute } from '@animal-store/platform/testing';
import { beforeAll, expect, test } from 'vitest';
import { readCode, readConstraint, readUniqueViolation } from '../../src/connections/index.js';
import { useService } from '../support/test-service.js';

const { service } = useService();

beforeAll(() =>
  execute(
    service.databaseUrl,
    `ALTER TABLE parcels
      ADD CONSTRAINT one_label EXCLUDE (label WITH =) WHERE (shelf = 1),
      ADD CONSTRAINT "One ""label"" there" EXCLUDE (label WITH =) WHERE (shelf = 2),
      ADD CONSTRAINT no_spoons CHECK (label <> 'spoon');
    CREATE UNIQUE INDEX one_of_shelf_3 ON parcels (label) WHERE shelf = 3`,
  ),
);

/** The ways in which a store adds a row */
const WAYS = {
  'a merged insert': ({ label, shelf }) => service.items.create({ label, shelf }),
  async Prisma({ label, shelf }) {
    const { parcel } = await service.database.loadPrisma();
    return parcel.create({ data: { label, shelf } });
  },
  async 'SQL over Prisma'({ label, shelf }) {
    const prisma = await service.database.loadPrisma();
    return prisma.$executeRawUnsafe('INSERT INTO parcels (label, shelf) VALUES ($1, $2)', label, shelf);
  },
} satisfies Record<string, (row: { label: string; shelf: number }) => Promise<unknown>>;

const KINDS = [
  ['23P01', 'one_label', 1, 'cup'],
  ['23P01', 'One "label" there', 2, 'cup'],
  ['23505', 'one_of_shelf_3', 3, 'cup'],
  ['23514', 'no_spoons', 4, 'spoon'],
] as const;

test.each(Object.keys(WAYS) as (keyof typeof WAYS)[])(
  'constraints that %s violates can be told apart by their names',
  async (way) => {
    for (const [code, name, shelf, what] of KINDS) {
      const row = { label: what === 'cup' ? `cup of ${way}` : what, shelf };
      await WAYS[way](row).catch(() => {});
      const error = await WAYS[way](row).catch((thrown: unknown) => thrown);
      expect([readCode(error), readConstraint(error)]).toEqual([code, name]);
      expect(readUniqueViolation(error)).toBe(code === '23505' ? name : '');
    }
  },
);

test('a missing reference is named, too', async () => {
  const prisma = await service.database.loadPrisma();
  const error = await prisma.scan.create({ data: { parcelId: 99 } }).catch((thrown: unknown) => thrown);
  expect([readCode(error), readConstraint(error)]).toEqual(['23503', 'scans_parcel_id_fkey']);
});

test('what violates no constraint has no name of one', () => {
  for (const error of [
    new Error('constraint "x"'),
    'text',
    null,
    undefined,
    Object.assign(new Error(), { code: '57014' }),
  ])
    expect(readConstraint(error)).toBe('');
});

test('of ten rows that exclude each other and come at once, one is stored', async () => {
  const rows = Array.from({ length: 10 }, () => WAYS['a merged insert']({ label: 'ten', shelf: 1 }));
  const outcomes = await Promise.allSettled(rows);
  const refused = outcomes.flatMap((each) => (each.status === 'rejected' ? readConstraint(each.reason) : []));
  expect(refused).toEqual(Array(9).fill('one_label'));
});
