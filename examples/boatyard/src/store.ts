import type { Database as DatabaseOf } from '@animal-store/platform/connections';
import { defineStore } from '@animal-store/platform/store';
import { definition } from './definition.js';
import type { PrismaClient } from './generated/client.js';

/** What the operations are made with. Their types know the scopes, plans and error codes of the definition. */
export const { ApiError, createProcedure, createRouter, ownKey } = defineStore(definition);

/** With the Prisma client that is generated from prisma/ */
export type Database = DatabaseOf<PrismaClient>;
