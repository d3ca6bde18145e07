import { createErrorTable } from '../errors/error-table.js';
import { checkDefinition } from '../operations/definition-check.js';
import { listOperations } from '../operations/list-operations.js';
import { createRouter } from '../operations/resource.js';
import { checkResources } from '../operations/resource-check.js';
import { buildDocument, type DocumentOptions } from './document.js';

/**
 * What callers know of a service, for tools that generate code and texts from it: the OpenAPI document, the operations with
 * the schemas of their inputs, which a document cannot hold, and the error codes.
 *
 * @throws OperatorError naming what the service could not be started with
 */
export function describeService(options: DocumentOptions) {
  checkDefinition(options.definition);
  checkResources(options.definition, options.resources);
  return {
    operations: listOperations(createRouter(options.resources)),
    errors: createErrorTable(options.definition),
    document: buildDocument(options),
  };
}
