import { createRequire } from 'node:module';
import { ROOT } from '@animal-store/definition/root';

/** Of the REST interface: it grows by docs/guides/compatibility.md, whatever the service's releases are called. */
export const INTERFACE_VERSION = '1.0.0';

/** The service's own, in package.json. */
export const { version: VERSION } = createRequire(ROOT)('./package.json') as { version: string };
