import type { Database as DatabaseOf } from '@animal-store/platform/connections';
import { defineStore } from '@animal-store/platform/store';
import { definition } from './definition/definition.js';
import type { PrismaClient } from './definition/generated/client.js';

export const { ApiError, createProcedure, createRouter, ownKey } = defineStore(definition);

export type Database = DatabaseOf<PrismaClient>;
