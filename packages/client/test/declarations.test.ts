import { join } from 'node:path';
import ts from 'typescript';
import { expect, test } from 'vitest';
import { appRouter, list } from '../../../test/support/operations-under-test.js';
import { listOperations } from '../../platform/src/operations/list-operations.js';

/** A package of somebody else, which exports what it makes of the client without naming types. */
const WRAPPER = `
import * as client from '@animal-store/client';
export const createStore = (apiKey: string) => client.createClient({ baseUrl: '', apiKey });
const store = createStore('');
export const { limits } = store;
${listOperations(appRouter)
  .map(({ name }) => `export const { ${name} } = store;`)
  .join('\n')}
export const catalogue = () => client.items(store.${list.name});
export const all = client;
export const toRouter = (router: client.AppRouter) => router._def;
export const { $types } = {} as client.AppRouter['_def']['_config'];
export const readError = (error: unknown) => (client.isApiError(error) ? error.shape : undefined);
`;

test('a package that wraps the client can emit its declarations: every type that they reach has a name to import', () => {
  const file = join(import.meta.dirname, 'wrapper.mts');
  const options: ts.CompilerOptions = {
    declaration: true,
    emitDeclarationOnly: true,
    strict: true,
    skipLibCheck: true,
    target: ts.ScriptTarget.ES2023,
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    types: [],
  };
  const host = ts.createCompilerHost(options);
  const { getSourceFile, fileExists, readFile } = host;
  host.getSourceFile = (name, format, ...rest) =>
    name === file
      ? ts.createSourceFile(name, WRAPPER, format)
      : getSourceFile.call(host, name, format, ...rest);
  host.fileExists = (name) => name === file || fileExists.call(host, name);
  host.readFile = (name) => (name === file ? WRAPPER : readFile.call(host, name));
  const program = ts.createProgram([file], options, host);
  const source = program.getSourceFile(file);
  const diagnostics = [
    ...program.getSemanticDiagnostics(source),
    ...program.getDeclarationDiagnostics(source),
  ];
  expect(diagnostics.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'))).toEqual(
    [],
  );
});
