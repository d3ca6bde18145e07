import { IDENTITY } from '@animal-store/definition/identity';
import { OperatorError } from '../errors/operator-error.js';
import { listOperations } from './list-operations.js';
import { createRouter, type Resource } from './resource.js';

/**
 * Checks that what the identity names exists, which its types cannot.
 *
 * @throws OperatorError naming the member that is wrong
 */
export function checkIdentity(resources: readonly Resource[]): void {
  const { mainOperation, mainPath, mainTable, grants } = IDENTITY;
  const operations = listOperations(createRouter(resources));
  const main = operations.find(({ name }) => name === mainOperation);
  const problem =
    main === undefined
      ? `mainOperation is ${mainOperation}, but the operations are ${operations.map(({ name }) => name).join(', ')}`
      : main.path !== mainPath
        ? `mainPath is ${mainPath}, but the path of ${mainOperation} is ${main.path}`
        : !Object.hasOwn(grants, mainTable)
          ? `mainTable is ${mainTable}, but grants are for ${Object.keys(grants).join(', ')}`
          : undefined;
  if (problem !== undefined)
    throw new OperatorError(`In identity.ts of the definition, ${problem}: correct it.`);
}
