import { readFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { build, type Plugin, type Rolldown } from 'vite';
import { expect, test } from 'vitest';

const ENTRY = 'measured-program';

/** What a page loads of a program with the versions of the lock file, minified and gzipped. */
async function measure(code: string): Promise<string> {
  const program: Plugin = {
    name: ENTRY,
    resolveId: (id) => (id.endsWith(ENTRY) ? `\0${ENTRY}` : undefined),
    load: (id) => (id === `\0${ENTRY}` ? code : undefined),
  };
  const built = (await build({
    configFile: false,
    logLevel: 'error',
    plugins: [program],
    resolve: { conditions: ['@animal-store/source'] },
    build: { write: false, minify: true, lib: { entry: ENTRY, formats: ['es'], fileName: ENTRY } },
  })) as Rolldown.RolldownOutput[];
  const chunks = built.flatMap(({ output }) => output).filter((file) => file.type === 'chunk');
  const bytes = gzipSync(chunks.map((chunk) => chunk.code).join('\n')).length;
  return `${(bytes / 1_000).toFixed(1)} KB`;
}

test('the README says how much a page loads, compared with the client of tRPC alone', async () => {
  const plain = await measure("export { createTRPCClient, httpBatchLink } from '@trpc/client';");
  const own = await measure("export { createClient, isApiError } from '@animal-store/client';");
  const readme = await readFile('packages/client/README.md', 'utf8');
  const [row] = /^\| in a page, .*/m.exec(readme) ?? [];
  expect(row).toBe(`| in a page, minified and gzipped | ${plain} | ${own} |`);
});
