/** The build copies this package to dist/node_modules of the store, so that a deployment needs nothing of packages/. */
const TO_ROOT = import.meta.url.includes('/dist/node_modules/') ? '../../../../../' : '../../../';

/** The folder of the store: package.json, prisma/, scripts/ and dist/ are in it. */
export const ROOT = new URL(TO_ROOT, import.meta.url);
