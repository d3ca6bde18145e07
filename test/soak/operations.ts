import { listOperations, type Operation } from '../../packages/platform/src/operations/list-operations.js';
import { appRouter } from '../../src/router.js';

export type OperationName = keyof typeof appRouter._def.procedures;

/** What the service offers, by the name: the soak has to call all of them. */
export const OPERATIONS = new Map(listOperations(appRouter).map((operation) => [operation.name, operation]));

export function operationOf(name: OperationName): Operation {
  const operation = OPERATIONS.get(name);
  if (operation === undefined) throw new Error(`There is no operation ${name}`);
  return operation;
}

/** Over REST, as the document has it */
export function successStatus({ success, output }: Operation): number {
  return success?.status ?? (output === undefined ? 204 : 200);
}
