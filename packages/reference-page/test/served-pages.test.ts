import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describeService } from '@animal-store/platform/development';
import { startStore } from '@animal-store/platform/testing';
import { writePages } from '@animal-store/reference-page';
import { expect, test } from 'vitest';
import { BOATYARD, loadBoatyard } from './boatyard.js';

test('a store that has built its pages serves them, and nothing that it lacks', async () => {
  const root = await mkdtemp(join(tmpdir(), 'boatyard-served-'));
  for (const path of ['package.json', 'prisma'])
    await cp(join(BOATYARD, path), join(root, path), { recursive: true });
  const boatyard = await loadBoatyard();
  const definition = { ...boatyard.definition, root: pathToFileURL(`${root}/`) };
  const { resources } = boatyard;
  const { document } = describeService({ definition, resources, publicUrl: '', stagingUrl: undefined });
  writePages({ root, identity: definition.identity, document });
  const { url, close } = await startStore({ definition, resources });
  const ask = async (path: string) => {
    const response = await fetch(url + path);
    return [response.status, response.headers.get('content-type'), await response.text()];
  };
  try {
    expect(await ask('/docs')).toEqual([
      200,
      'text/html; charset=utf-8',
      expect.stringContaining('Boatyard'),
    ]);
    expect(await ask('/docs/key')).toEqual([
      200,
      'text/html; charset=utf-8',
      expect.stringContaining('by_test_'),
    ]);
    expect(await ask('/llms.txt')).toEqual([
      200,
      'text/plain; charset=utf-8',
      expect.stringMatching(/^# Boatyard/),
    ]);
    expect(await ask('/docs/guides.json')).toEqual([
      200,
      'application/json; charset=utf-8',
      expect.any(String),
    ]);
    for (const path of ['/changelog', '/changelog.atom', '/client.tgz', '/docs/synonyms.json'])
      expect([path, (await ask(path))[0]]).toEqual([path, 404]);
  } finally {
    await close();
    await rm(root, { recursive: true, force: true });
  }
});
