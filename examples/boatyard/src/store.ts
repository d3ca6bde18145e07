import { defineStore } from '@animal-store/platform/store';
import { definition } from './definition.js';

/** What the operations are made with. Their types know the scopes, plans and error codes of the definition. */
export const { ApiError, createProcedure, createRouter, ownKey } = defineStore(definition);
