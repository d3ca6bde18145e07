import type { Database as DatabaseOf } from '@animal-store/platform/connections';
import { defineStore } from '@animal-store/platform/store';
import { definition } from './definition/definition.js';
import type { PrismaClient } from './generated/client.js';

/** What the operations of this store are made with. Their types know its scopes, plans and error codes. */
export const { ApiError, createProcedure, createRouter, ownKey } = defineStore(definition);

/** The database, with Prisma's client of this store */
export type Database = DatabaseOf<PrismaClient>;
