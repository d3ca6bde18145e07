import type { Definition } from '../definition/definition.js';
import { OperatorError } from '../errors/operator-error.js';
import { listOperations, type Operation } from './list-operations.js';
import { createRouter, type Resource } from './resource.js';

/**
 * Checks that the definition of a store and its operations agree, which their types cannot.
 *
 * @throws OperatorError naming the member that is wrong
 */
export function checkResources(definition: Definition, resources: readonly Resource[]): void {
  const operations = listOperations(createRouter(resources));
  const problem =
    findIdentityError(definition, operations) ??
    operations
      .map((operation) => findOperationError(definition, operation))
      .find((each) => each !== undefined);
  if (problem !== undefined) throw new OperatorError(`The store cannot start: ${problem}.`);
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
  { plans, scopes }: Definition,
  { name, scope, cost = 1 }: Operation,
): string | undefined {
  if (scope !== 'any' && !scopes.includes(scope))
    return `the scope of ${name} is ${scope}, which is none of ${scopes.join(', ')}, nor any`;
  // No call may cost more than the smallest plan allows per minute.
  const maxCost = Math.min(...Object.values(plans).map((limits) => limits?.perMinute ?? Infinity));
  if (!Number.isInteger(cost) || cost < 1 || cost > maxCost)
    return `the cost of ${name} is ${cost}, and not a whole number from 1 to ${maxCost}, which is what the smallest plan allows per minute`;
  return undefined;
}
