import { createRequire } from 'node:module';

/** The version of the REST interface. It follows docs/guides/compatibility.md, and not the service's releases. */
export const INTERFACE_VERSION = '1.0.0';

/** The version of the service, from its package.json. */
export const readVersion = (root: URL): string => createRequire(root)('./package.json').version;
