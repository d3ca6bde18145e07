import { readdir } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';
import type { Resource } from '@animal-store/platform/operations';
import { expect, test } from 'vitest';
import { resources } from '../src/router.js';

test('every resource that a folder of src/ exports is part of the service', async () => {
  const files = await readdir('src', { recursive: true });
  const definitions = files.filter((file) => /^[^/]+\/procedures\.ts$/.test(file));
  // The platform brings one, too.
  expect(definitions.length).toBeGreaterThanOrEqual(resources.length - 1);
  for (const file of definitions) {
    const exported: Readonly<Record<string, unknown>> = await import(pathToFileURL(`src/${file}`).href);
    const found = Object.values(exported).filter(isResource);
    expect(found, `src/${file} exports no resource`).not.toEqual([]);
    for (const resource of found) {
      const isListed = resources.some((listed) => listed === resource);
      expect(isListed, `${resource.name} of src/${file} is not in the list of src/router.ts`).toBe(true);
    }
  }
});

function isResource(value: unknown): value is Resource {
  return typeof value === 'object' && value !== null && 'procedures' in value && 'createStore' in value;
}
