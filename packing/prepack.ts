import { readFile, rm, writeFile } from 'node:fs/promises';
import { build } from 'vite';
import { writeTypes } from './types.js';

/**
 * Makes the package of the client: what `npm pack` runs before it packs, in this folder.
 *
 * npm packs the package.json that it finds, and the one here lists what the service needs: Fastify, Prisma, PostgreSQL.
 * So another one stands in its place until `postpack`. Should that never come, `dist/service-package.json` is the first.
 */
interface Manifest extends Record<string, unknown> {
  readonly dependencies: Readonly<Record<string, string>>;
}

const FOLDER = 'dist/package';
const ENTRY = 'src/client.ts';

const text = await readFile('package.json', 'utf8');
await rm(FOLDER, { recursive: true, force: true });
await build({
  configFile: false,
  publicDir: false,
  logLevel: 'warn',
  build: {
    outDir: FOLDER,
    // Front-ends minify what they ship; until then it is to be read.
    minify: false,
    lib: { entry: ENTRY, formats: ['es'], fileName: 'client' },
    rolldownOptions: { external: /^@trpc\// },
  },
});
await writeTypes('tsconfig.json', ENTRY, FOLDER);
await writeFile('dist/service-package.json', text);
await writeFile('package.json', `${JSON.stringify(toClientManifest(JSON.parse(text)), null, 2)}\n`);

/**
 * tRPC is a peer dependency, as in tRPC's own packages: a front-end that uses it for itself, say with TanStack Query,
 * has to have one copy.
 */
function toClientManifest({ dependencies, ...manifest }: Manifest): object {
  const kept = ['name', 'version', 'description', 'license', 'private', 'type', 'engines', 'files'];
  const peers = ['@trpc/client', '@trpc/server'];
  return {
    ...Object.fromEntries(kept.map((member) => [member, manifest[member]])),
    sideEffects: false,
    exports: { './client': { types: `./${FOLDER}/client.d.ts`, default: `./${FOLDER}/client.js` } },
    peerDependencies: Object.fromEntries(peers.map((name) => [name, `^${dependencies[name]}`])),
  };
}
