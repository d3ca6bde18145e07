import type { AnyTRPCProcedure, TRPCBuiltRouter, TRPCDecorateCreateRouterOptions } from '@trpc/server';
import type { Database } from '../connections/client.js';
import type { Functions } from '../connections/outage.js';
import type { ErrorShape } from '../errors/api-error.js';
import { router } from './builder.js';
import { toOperation } from './direct-call.js';

type Procedures = Readonly<Record<string, AnyTRPCProcedure>>;

/** A part of the API: a store and its operations. Only the list in router.ts names it. */
export interface Resource<Store extends Functions<Store> = object> {
  /** The name of the store in the procedures' context, and, capitalized, the tag in the OpenAPI document. */
  readonly name: string;
  /** The description of the tag. */
  readonly description: string;
  createStore(database: Database): Store;
  /** The operations, by the names that all protocols use. */
  readonly procedures: Procedures;
}

/** The stores of all resources, by the resource's name. */
export type Stores = Readonly<Record<string, object>>;

/** `{ a: 1 } | { b: 2 }` becomes `{ a: 1 } & { b: 2 }`: the procedures of all resources, in place of those of one of them */
type UnionToIntersection<Union> = (Union extends unknown ? (member: Union) => void : never) extends (
  all: infer Intersection,
) => void
  ? Intersection
  : never;

/** Written out without the context, so that the types of clients do not refer to internals of the service. */
export type ResourceRouter<Each extends Resource, Shape = ErrorShape> =
  UnionToIntersection<Each['procedures']> extends infer All extends Procedures
    ? TRPCBuiltRouter<
        { ctx: object; meta: object; errorShape: Shape; transformer: false },
        TRPCDecorateCreateRouterOptions<All>
      >
    : never;

/** What tRPC's router refuses */
const RESERVED_NAMES: readonly string[] = ['then', 'call', 'apply'];

/** Whether an operation can have a name: tRPC, tools, metrics and logs name it by this. */
export function isOperationName(name: string): boolean {
  return /^[a-z][A-Za-z\d]{0,63}$/.test(name) && !RESERVED_NAMES.includes(name) && !(name in {});
}

/**
 * The router of all operations, as all protocols call them. A procedure whose name cannot be that of an operation is left out:
 * the process and the commands refuse it by checkResources, without a stack.
 *
 * @throws TypeError when a procedure cannot be an operation, or two operations or two resources have the same name
 */
export function createRouter<Each extends Resource>(resources: readonly Each[]): ResourceRouter<Each> {
  const operations: Record<string, AnyTRPCProcedure> = {};
  const names = new Set<string>();
  for (const { name: resourceName, procedures } of resources) {
    if (names.has(resourceName)) throw new TypeError(`Two resources are named ${resourceName}`);
    names.add(resourceName);
    for (const [name, procedure] of Object.entries(procedures)) {
      if (!isOperationName(name)) continue;
      if (Object.hasOwn(operations, name)) throw new TypeError(`Two operations are named ${name}`);
      operations[name] = toOperation(name, procedure);
    }
  }
  return router(operations) as unknown as ResourceRouter<Each>;
}
