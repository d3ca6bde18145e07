import { createRequire } from 'node:module';
import { ROOT } from '@animal-store/definition/root';

/** The version of the REST interface. It follows docs/guides/compatibility.md, and not the service's releases. */
export const INTERFACE_VERSION = '1.0.0';

/** The version of the service, from package.json. */
export const { version: VERSION } = createRequire(ROOT)('./package.json') as { version: string };
