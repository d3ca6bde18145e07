import { execute } from '@animal-store/platform/testing';
import { beforeAll, expect, test } from 'vitest';
import { readCode, readConstraint, readUniqueViolation } from '../../src/connections/index.js';
import { useService } from '../support/test-service.js';

const { service } = useService();

beforeAll(() =>
  execute(
    service.databaseUrl,
    `ALTER TABLE boats
      ADD CONSTRAINT one_name EXCLUDE (name WITH =) WHERE (berth = 1),
      ADD CONSTRAINT "One ""name"" there" EXCLUDE (name WITH =) WHERE (berth = 2),
      ADD CONSTRAINT no_spoons CHECK (name <> 'spoon');
    CREATE UNIQUE INDEX one_of_berth_3 ON boats (name) WHERE berth = 3`,
  ),
);

/** The ways in which a store adds a row */
const WAYS = {
  'a merged insert': ({ name, berth }) => service.items.create({ name, berth }),
  async Prisma({ name, berth }) {
    const { boat } = await service.database.loadPrisma();
    return boat.create({ data: { name, berth } });
  },
  async 'SQL over Prisma'({ name, berth }) {
    const prisma = await service.database.loadPrisma();
    return prisma.$executeRawUnsafe('INSERT INTO boats (name, berth) VALUES ($1, $2)', name, berth);
  },
} satisfies Record<string, (row: { name: string; berth: number }) => Promise<unknown>>;

const KINDS = [
  ['23P01', 'one_name', 1, 'cup'],
  ['23P01', 'One "name" there', 2, 'cup'],
  ['23505', 'one_of_berth_3', 3, 'cup'],
  ['23514', 'no_spoons', 4, 'spoon'],
] as const;

test.each(Object.keys(WAYS) as (keyof typeof WAYS)[])(
  'constraints that %s violates can be told apart by their names',
  async (way) => {
    for (const [code, constraint, berth, what] of KINDS) {
      const row = { name: what === 'cup' ? `cup of ${way}` : what, berth };
      await WAYS[way](row).catch(() => {});
      const error = await WAYS[way](row).catch((thrown: unknown) => thrown);
      expect([readCode(error), readConstraint(error)]).toEqual([code, constraint]);
      expect(readUniqueViolation(error)).toBe(code === '23505' ? constraint : '');
    }
  },
);

test('a missing reference is named, too', async () => {
  const prisma = await service.database.loadPrisma();
  const error = await prisma.move.create({ data: { boatId: 99 } }).catch((thrown: unknown) => thrown);
  expect([readCode(error), readConstraint(error)]).toEqual(['23503', 'moves_boat_id_fkey']);
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
  const rows = Array.from({ length: 10 }, () => WAYS['a merged insert']({ name: 'ten', berth: 1 }));
  const outcomes = await Promise.allSettled(rows);
  const refused = outcomes.flatMap((each) => (each.status === 'rejected' ? readConstraint(each.reason) : []));
  expect(refused).toEqual(Array(9).fill('one_name'));
});
