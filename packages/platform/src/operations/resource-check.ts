import { TRPC_ERROR_CODES_BY_KEY } from '@trpc/server/rpc';
import type { Definition } from '../definition/definition.js';
import { platformErrors } from '../errors/error-table.js';
import { OperatorError } from '../operator-errors/operator-error.js';
import type { RequestContext } from './builder.js';
import { listOperations, type Operation } from './list-operations.js';
import { createRouter, isOperationName, type Resource } from './resource.js';

/**
 * Checks that the definition of a store and its operations agree, which their types cannot. What follows from the
 * definition alone is in definition-check.ts, which loads nothing of tRPC.
 *
 * @throws OperatorError naming the member that is wrong
 */
export function checkResources(definition: Definition, resources: readonly Resource[]): void {
  const problem =
    findCodeError(definition) ??
    findFirst(resources, findNameError) ??
    findOperationsError(definition, resources);
  if (problem !== undefined) throw new OperatorError(`The definition of the store is wrong: ${problem}.`);
}

function findFirst<Item>(
  items: readonly Item[],
  find: (item: Item) => string | undefined,
): string | undefined {
  return items.map(find).find((problem) => problem !== undefined);
}

function findCodeError({ errors }: Definition): string | undefined {
  return findFirst(Object.entries(errors), ([code, { trpcCode }]) =>
    Object.hasOwn(TRPC_ERROR_CODES_BY_KEY, trpcCode)
      ? undefined
      : `errors.${code}.trpcCode is ${trpcCode}, which tRPC does not have`,
  );
}

/**
 * Checks what a resource has created as its store. Of an instance of a class, the methods would be lost.
 *
 * @throws OperatorError naming the resource, and the member that is no function
 */
export function checkStore(resourceName: string, store: unknown): void {
  const isFlat =
    typeof store === 'object' && store !== null && Object.getPrototypeOf(store) === Object.prototype;
  const other = isFlat
    ? Object.entries(store).find(([, member]) => typeof member !== 'function')?.[0]
    : undefined;
  if (isFlat && other === undefined) return;
  const what = other === undefined ? 'it is something else' : `its member ${other} is something else`;
  throw new OperatorError(
    `The store of the resource ${resourceName} must be a flat object of functions, but ${what}: see createStore of the resource.`,
  );
}

/** What handlers find in `ctx` beside the stores, each of which is there by the name of its resource. */
const CONTEXT_MEMBERS: Readonly<Record<keyof RequestContext, true>> = {
  apiKey: true,
  limits: true,
  limitsPer: true,
  bannedUntil: true,
  revokeKey: true,
  deprecated: true,
  now: true,
  idempotency: true,
  once: true,
  rehearsal: true,
  linkNextPage: true,
};

function findNameError({ name, procedures }: Resource): string | undefined {
  if (Object.hasOwn(CONTEXT_MEMBERS, name))
    return `a resource is named ${name}, but ctx.${name} is something else than its store`;
  if (!/^[a-z][a-z\d]*$/i.test(name) || name in {})
    return `a resource is named ${JSON.stringify(name)}, but a name is letters and digits, and no member that every object has`;
  return findFirst(Object.keys(procedures), (operation) =>
    isOperationName(operation)
      ? undefined
      : `an operation is named ${JSON.stringify(operation)}, but a name is letters and digits, begins in lower case, and is none of tRPC's own`,
  );
}

function findOperationsError(definition: Definition, resources: readonly Resource[]): string | undefined {
  const operations = listOperations(createRouter(resources));
  return (
    findIdentityError(definition, operations) ??
    findFirst(operations, (operation) => findOperationError(definition, operation))
  );
}

function findIdentityError({ identity }: Definition, operations: readonly Operation[]): string | undefined {
  const { mainOperation, mainPath, mainTable, grants } = identity;
  const main = operations.find(({ name }) => name === mainOperation);
  if (main === undefined)
    return `identity.mainOperation is ${mainOperation}, but the operations are ${operations.map(({ name }) => name).join(', ')}`;
  if (main.path !== mainPath)
    return `identity.mainPath is ${mainPath}, but the path of ${mainOperation} is ${main.path}`;
  if (!Object.hasOwn(grants, mainTable))
    return `identity.mainTable is ${mainTable}, but identity.grants are for ${Object.keys(grants).join(', ')}`;
  return undefined;
}

function findOperationError(
  { plans, scopes, errors }: Definition,
  { name, scope, cost = 1, errors: codes = [] }: Operation,
): string | undefined {
  if (scope !== 'any' && !scopes.includes(scope))
    return `the scope of ${name} is ${scope}, which is none of ${scopes.join(', ')}, nor any`;
  const unknown = codes.find((code) => !Object.hasOwn(errors, code) && !Object.hasOwn(platformErrors, code));
  if (unknown !== undefined) return `the errors of ${name} have ${unknown}, which is no code`;
  // No call may cost more than the smallest plan allows per minute.
  const maxCost = Math.min(...Object.values(plans).map((limits) => limits?.perMinute ?? Infinity));
  if (!Number.isInteger(cost) || cost < 1 || cost > maxCost)
    return `the cost of ${name} is ${cost}, and not a whole number from 1 to ${maxCost}, which is what the smallest plan allows per minute`;
  return undefined;
}
