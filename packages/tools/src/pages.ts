import { createRequire } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { describeService, OperatorError } from '@animal-store/platform/development';
import type { Store } from './store.js';

const PACKAGE = '@animal-store/reference-page';

/**
 * Builds the reference page of a store. Returns the path of its folder.
 *
 * @throws OperatorError where the package is not installed, or a guide is wrong
 */
export async function buildPages({ root, definition, resources }: Store): Promise<string> {
  const { writePages } = await loadPackage(root);
  const { document } = describeService({ definition, resources, publicUrl: '', stagingUrl: undefined });
  try {
    return writePages({ root: fileURLToPath(root), identity: definition.identity, document });
  } catch (cause) {
    throw new OperatorError(`docs/guides: ${(cause as Error).message}`, { cause });
  }
}

/** The package that the store has installed */
function loadPackage(root: URL): Promise<typeof import('@animal-store/reference-page')> {
  let path: string;
  try {
    path = createRequire(new URL('package.json', root)).resolve(PACKAGE);
  } catch (cause) {
    throw new OperatorError(`The package ${PACKAGE} is missing: npm install --save-dev ${PACKAGE}`, {
      cause,
    });
  }
  return import(pathToFileURL(path).href);
}
