import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Definition } from '@animal-store/platform/definition';
import type { Resource } from '@animal-store/platform/operations';

/** The folder of a store that has no guides and is not the animals' */
export const BOATYARD = resolve('examples/another-store');

/** What it is called, and what it serves */
export async function loadBoatyard(): Promise<{ definition: Definition; resources: readonly Resource[] }> {
  const load = (name: string) => import(pathToFileURL(`${BOATYARD}/src/${name}`).href);
  const [{ definition }, { resources }] = await Promise.all(['definition.ts', 'router.ts'].map(load));
  return { definition, resources };
}
