import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';

/** Of statements that load something: types are erased, and a dynamic import loads when it runs. */
const IMPORT = /^(?:import|export) (?!type\b)(?:[^;']*? from )?'([^']+)'/gm;

/** Every module that is loaded with a file of src/, packages by their names. */
function listLoaded(path: string, loaded = new Set<string>()): Set<string> {
  if (loaded.has(path)) return loaded;
  loaded.add(path);
  for (const [, target = ''] of readFileSync(path, 'utf8').matchAll(IMPORT)) {
    if (!target.startsWith('.')) loaded.add(target);
    else if (target.endsWith('.js')) {
      const source = join(dirname(path), target.replace(/\.js$/, '.ts'));
      if (source.startsWith('src/')) listLoaded(source, loaded);
    }
  }
  return loaded;
}

test('the SDK is loaded with the first request for a tool, and not with the service', () => {
  const sdk = '@modelcontextprotocol/server';
  const atStart = listLoaded('src/main.ts');
  expect(atStart).toContain('src/platform/protocols/mcp/mcp.ts');
  expect(atStart).toContain('@trpc/server');
  expect(atStart).not.toContain(sdk);
  expect(listLoaded('src/platform/protocols/mcp/endpoint.ts')).toContain(sdk);
});
