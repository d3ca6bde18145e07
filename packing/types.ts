import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import ts from 'typescript';

/** What the router's type says of the inside of the service; clients infer from inputs, outputs and errors only. */
const INSIDE = ['Context', 'OperationMeta'];

/**
 * Writes the declarations of a source file, and of those that they refer to, into a folder.
 *
 * They are the compiler's own, in which the inputs and outputs of the procedures are spelled out already. Two changes
 * make them independent of the service: what is marked `@internal` is left out, and so are the types of INSIDE.
 *
 * @throws Error when the sources do not compile
 */
export async function writeTypes(configPath: string, entry: string, folder: string): Promise<void> {
  const program = createProgram(configPath, entry);
  const pending = new Set([resolve(entry)]);
  for (const path of pending) {
    const text = emitDeclarations(program, path);
    const target = join(folder, relative(dirname(entry), path).replace(/\.ts$/, '.d.ts'));
    await mkdir(dirname(target), { recursive: true });
    await writeFile(target, text);
    for (const { fileName } of ts.preProcessFile(text).importedFiles) {
      if (fileName.startsWith('.')) pending.add(resolve(dirname(path), fileName.replace(/\.js$/, '.ts')));
    }
  }
}

function createProgram(configPath: string, entry: string): ts.Program {
  const { config } = ts.readConfigFile(configPath, ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, dirname(configPath));
  const program = ts.createProgram([entry], {
    ...options,
    declaration: true,
    stripInternal: true,
    incremental: false,
    sourceMap: false,
  });
  const faults = ts.getPreEmitDiagnostics(program);
  if (faults.length > 0) throw new Error(ts.formatDiagnostics(faults, ts.createCompilerHost(options)));
  return program;
}

function emitDeclarations(program: ts.Program, path: string): string {
  let text = '';
  const write: ts.WriteFileCallback = (_path, emitted) => {
    text = emitted;
  };
  const transformers = { afterDeclarations: [hideInside] };
  program.emit(program.getSourceFile(path), write, undefined, true, transformers);
  return text;
}

const hideInside: ts.TransformerFactory<ts.SourceFile | ts.Bundle> = (context) => {
  const visit = (node: ts.Node): ts.Node =>
    ts.isImportTypeNode(node) && node.qualifier && INSIDE.includes(ts.idText(node.qualifier as ts.Identifier))
      ? ts.factory.createKeywordTypeNode(ts.SyntaxKind.ObjectKeyword)
      : ts.visitEachChild(node, visit, context);
  return (file) => ts.visitNode(file, visit) as ts.SourceFile;
};
