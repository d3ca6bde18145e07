import { fileURLToPath } from 'node:url';
import { describeService, OperatorError } from '@animal-store/platform/development';
import type { Store } from './store.js';

const PACKAGE = '@animal-store/reference-page';

/**
 * Builds the reference page of a store. Returns the path of its folder.
 *
 * @throws OperatorError where the package is not installed, or a guide is wrong
 */
export async function buildPages({ root, definition, resources }: Store): Promise<string> {
  const { writePages } = await import('@animal-store/reference-page').catch((cause) => {
    if (cause.code !== 'ERR_MODULE_NOT_FOUND') throw cause;
    throw new OperatorError(`The package ${PACKAGE} is missing: npm install --save-dev ${PACKAGE}`, {
      cause,
    });
  });
  const { document } = describeService({ definition, resources, publicUrl: '', stagingUrl: undefined });
  try {
    return writePages({ root: fileURLToPath(root), identity: definition.identity, document });
  } catch (cause) {
    throw new OperatorError(`docs/guides: ${(cause as Error).message}`, { cause });
  }
}
