import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Definition } from '@animal-store/platform/definition';
import { describeService } from '@animal-store/platform/development';
import type { Resource } from '@animal-store/platform/operations';
import { type StoreUnderTest, startStore } from '@animal-store/platform/testing';
import { writePages } from '@animal-store/reference-page';

/** The folder of a store that has no guides and is not the animals' */
const BOATYARD = resolve('examples/boatyard');

/** What it is called, and what it serves */
export async function loadBoatyard(): Promise<{
  definition: Definition;
  resources: readonly Resource[];
}> {
  const load = (name: string) => import(pathToFileURL(`${BOATYARD}/src/${name}`).href);
  const [{ definition }, { resources }] = await Promise.all(['definition.ts', 'router.ts'].map(load));
  return { definition, resources };
}

/** Serves it from a folder of its own, into which its pages are built. */
export async function startBoatyard(): Promise<StoreUnderTest> {
  const root = await mkdtemp(join(tmpdir(), 'boatyard-served-'));
  for (const path of ['package.json', 'prisma'])
    await cp(join(BOATYARD, path), join(root, path), { recursive: true });
  const boatyard = await loadBoatyard();
  const definition = { ...boatyard.definition, root: pathToFileURL(`${root}/`) };
  const { resources } = boatyard;
  const { document } = describeService({ definition, resources, publicUrl: '', stagingUrl: undefined });
  writePages({ root, identity: definition.identity, document });
  const store = await startStore({ definition, resources });
  return { ...store, close: () => store.close().finally(() => rm(root, { recursive: true })) };
}
