/**
 * The folder of the service, from src/ as from dist/: package.json, prisma/, scripts/ and dist/ are in it. The platform
 * imports this as #store/root.js.
 */
export const ROOT = new URL('../', import.meta.url);
