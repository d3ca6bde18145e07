import { createReads, table } from '@animal-store/platform/tables';
import type { Database } from '../store.js';
import type { Category, CategoryName } from './schema.js';

const categories = table<Category, Omit<Category, 'id'>>('categories', { id: 'bigint', name: 'text' });

/** All queries on categories. Every method may fail with a database error: see isDatabaseOutage. */
export type CategoryStore = ReturnType<typeof createCategoryStore>;

export function createCategoryStore(database: Database) {
  return {
    ...createReads(database, categories),

    /** Names or renames a category. Of several simultaneous names, one stays. */
    async setName({ categoryId: id, name }: CategoryName): Promise<Category> {
      const { category } = await database.loadPrisma();
      await category.upsert({ where: { id }, create: { id, name }, update: { name } });
      return { id, name };
    },
  };
}
