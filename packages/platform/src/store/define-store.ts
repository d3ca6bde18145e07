import type {
  CodeOf,
  Definition,
  PlanOf,
  PlatformErrorCode,
  ScopeOf,
  WindowOf,
} from '../definition/definition.js';
import { createStoreError, type ErrorShape } from '../errors/api-error.js';
import { createProcedure } from '../operations/builder.js';
import { describeMistakes } from '../operations/definition-check.js';
import { createRouter, type Resource, type ResourceRouter } from '../operations/resource.js';
import { createOwnKey } from '../own-key/procedures.js';

type ShapeOf<Of extends Definition> = ErrorShape<CodeOf<Of> | PlatformErrorCode, ScopeOf<Of>>;

/** Stands for a definition that is refused before anything is served. */
const REFUSED = {
  identity: { keyPrefix: '', mainOperation: '' },
  windows: [{ name: '', lengthMs: 60_000, field: 'perMinute' }],
  plans: { none: { perMinute: 1 } },
  fallbackPlan: 'none',
  scopes: ['none'],
  errors: {},
};

/**
 * What the operations of a store are made with. Its types know the store's scopes, plans and error codes.
 *
 * @example export const { ApiError, createProcedure, createRouter, ownKey } = defineStore(definition);
 */
export function defineStore<const Of extends Definition>(definition: Of) {
  // `run` and the commands end with what is wrong. This is called before, where an error would be a stack.
  const sound = describeMistakes(definition) === undefined ? definition : (REFUSED as unknown as Of);
  return {
    /** tRPC's procedure builder, for the operations of a resource: `createProcedure<{ readonly pets: PetStore }>()` */
    createProcedure: <Stores extends object>() =>
      createProcedure<Stores, ScopeOf<Of>, CodeOf<Of> | PlatformErrorCode, PlanOf<Of>, WindowOf<Of>>(),
    /** The router of all operations, for typed clients */
    createRouter: <Each extends Resource>(resources: readonly Each[]) =>
      createRouter(resources) as unknown as ResourceRouter<Each, ShapeOf<Of>>,
    /** What the client should know */
    ApiError: createStoreError<CodeOf<Of>>(sound.errors),
    /** getKey and revokeKey: the resource that the platform brings */
    ownKey: createOwnKey(sound),
  };
}
