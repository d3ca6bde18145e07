import { expect, test } from 'vitest';
import { startBoatyard } from './boatyard.js';

test('a store that has built its pages serves them, and nothing that it lacks', async () => {
  const { url, close } = await startBoatyard();
  const ask = async (path: string) => {
    const response = await fetch(url + path);
    return [response.status, response.headers.get('content-type'), await response.text()];
  };
  const isServed = (type: string, text: string) => [
    200,
    `${type}; charset=utf-8`,
    expect.stringContaining(text),
  ];
  try {
    expect(await ask('/docs')).toEqual(isServed('text/html', '<h1>Boatyard Service</h1>'));
    expect(await ask('/docs/key')).toEqual(isServed('text/html', 'by_test_'));
    expect(await ask('/docs/icon.svg')).toEqual([200, 'image/svg+xml', expect.stringContaining('Boatyard')]);
    expect(await ask('/llms.txt')).toEqual(isServed('text/plain', '# Boatyard Service'));
    expect(await ask('/docs/guides.json')).toEqual(isServed('application/json', '"sections":[]'));
    for (const path of ['/changelog', '/changelog.atom', '/client.tgz'])
      expect([path, (await ask(path))[0]]).toEqual([path, 404]);
  } finally {
    await close();
  }
});
