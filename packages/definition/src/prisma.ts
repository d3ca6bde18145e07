/** Prisma's client of this store's schema, which `npm run generate` writes beside this file. */
export * from './generated/client.js';
