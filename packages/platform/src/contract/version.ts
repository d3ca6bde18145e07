import { createRequire } from 'node:module';

/** The version of the service, from its package.json. */
export const readVersion = (root: URL): string => createRequire(root)('./package.json').version;
