/** The folder of package.json, prisma/ and dist/, from this file as from what it is compiled to. */
export const ROOT = new URL(import.meta.url.endsWith('/dist/root.js') ? '../../' : '../', import.meta.url);
