import { resolve } from 'node:path';
import ts from 'typescript';
import { expect, test } from 'vitest';
import { definition } from '#operations-under-test';

const STORE = 'examples/boatyard';

/** What TypeScript says of a file beside store.ts that only the compiler sees. */
function compile(code: string): string[] {
  const path = resolve(STORE, 'src/wrong.ts');
  const { config } = ts.readConfigFile(`${STORE}/tsconfig.json`, ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent(
    { ...config, include: [], files: ['src/store.ts'] },
    ts.sys,
    STORE,
  );
  const host = ts.createCompilerHost(options);
  const { fileExists, readFile } = host;
  host.fileExists = (file) => file === path || fileExists(file);
  host.readFile = (file) => (file === path ? code : readFile(file));
  const program = ts.createProgram([path], { ...options, noEmit: true }, host);
  return ts
    .getPreEmitDiagnostics(program, program.getSourceFile(path))
    .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'));
}

test('what TypeScript says of a wrong scope or code names those of the store, and not the whole definition', () => {
  const messages = compile(`
    import { ApiError, createProcedure } from './store.js';
    const openapi = { method: 'GET', path: '/x', summary: 'X' } as const;
    createProcedure().meta({ openapi, stability: 'beta', scope: 'nobody:reads' });
    createProcedure().meta({ openapi, stability: 'beta', scope: 'any', errors: ['no_code'] });
    throw new ApiError('no_code');`);
  expect(messages).toEqual(
    ['nobody:reads', 'no_code', 'no_code'].map((wrong) =>
      expect.stringContaining(`"${wrong}"' is not assignable to`),
    ),
  );
  for (const scope of definition.scopes) expect(messages[0]).toContain(`"${scope}"`);
  for (const code of Object.keys(definition.errors)) expect(messages[1]).toContain(`"${code}"`);
  for (const message of messages) expect(message).not.toContain(definition.identity.title);
}, 30_000);
