import { createRequire } from 'node:module';

/**
 * The version of the REST interface, in the OpenAPI document. It grows by the rules of docs/guides/compatibility.md,
 * whatever the releases of the service are called.
 */
export const INTERFACE_VERSION = '1.0.0';

/** The service's own, in package.json. */
export const { version: VERSION } = createRequire(import.meta.url)('../../package.json') as {
  version: string;
};
