import { join } from 'node:path';
import ts from 'typescript';

/** What an editor shows when the pointer rests on a name, or beside an item of a completion list. */
interface Hint {
  /** The name with its type: `const pet: Pet` */
  readonly signature: string;
  /** The doc comment in one line */
  readonly text: string;
  readonly tags: ReadonlyMap<string, string>;
}

interface Completion {
  readonly name: string;
  /** Shown struck through */
  readonly isDeprecated: boolean;
}

export interface Editor {
  hover(position: number): Hint;
  complete(position: number): Completion[];
  /** The text beside an item of the completion list */
  describe(position: number, name: string): Hint;
  /** The names in the code that are struck through */
  listDeprecated(): string[];
  /** The declarations that a module exports, and their members */
  listExports(module: string): { readonly name: string; readonly text: string }[];
}

/** TypeScript's language service, as editors use it, on one file of a project. */
export function openEditor(project: string, code: string): Editor {
  const file = join(project, 'opened.ts');
  const options: ts.CompilerOptions = {
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.NodeNext,
    lib: ['lib.es2023.d.ts', 'lib.dom.d.ts'],
    types: [],
    strict: true,
    skipLibCheck: true,
  };
  const read = (path: string) => (path === file ? code : ts.sys.readFile(path));
  const { fileExists, directoryExists, getDirectories, readDirectory, realpath } = ts.sys;
  const service = ts.createLanguageService({
    directoryExists,
    getDirectories,
    readDirectory,
    ...(realpath && { realpath }),
    readFile: read,
    fileExists: (path) => path === file || fileExists(path),
    getCompilationSettings: () => options,
    getScriptFileNames: () => [file],
    getScriptVersion: () => '1',
    getScriptSnapshot(path) {
      const text = read(path);
      return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text);
    },
    getCurrentDirectory: () => project,
    getDefaultLibFileName: ts.getDefaultLibFilePath,
  });

  function toHint(info: ts.QuickInfo | ts.CompletionEntryDetails | undefined): Hint {
    if (info === undefined) throw new Error('the editor has nothing to show here');
    const tags = info.tags?.map(({ name, text }) => [name, ts.displayPartsToString(text)] as const);
    return {
      signature: ts.displayPartsToString(info.displayParts),
      text: toLine(info.documentation),
      tags: new Map(tags),
    };
  }

  return {
    hover: (position) => toHint(service.getQuickInfoAtPosition(file, position)),
    complete(position) {
      const { entries = [] } = service.getCompletionsAtPosition(file, position, {}) ?? {};
      return entries.map(({ name, kindModifiers = '' }) => ({
        name,
        isDeprecated: kindModifiers.split(',').includes('deprecated'),
      }));
    },
    describe: (position, name) =>
      toHint(service.getCompletionEntryDetails(file, position, name, {}, undefined, {}, undefined)),
    listDeprecated() {
      const marked = service
        .getSuggestionDiagnostics(file)
        .filter(({ reportsDeprecated }) => reportsDeprecated);
      return marked.map(({ start, length }) => code.slice(start, start + length));
    },
    listExports(module) {
      const program = service.getProgram();
      const source = program?.getSourceFile(module);
      const checker = program?.getTypeChecker();
      const symbol = source && checker?.getSymbolAtLocation(source);
      if (checker === undefined || symbol === undefined) throw new Error(`${module} is not loaded`);
      return checker.getExportsOfModule(symbol).flatMap((exported) => {
        const isAlias = (exported.flags & ts.SymbolFlags.Alias) !== 0;
        const declared = isAlias ? checker.getAliasedSymbol(exported) : exported;
        const members = checker.getDeclaredTypeOfSymbol(declared).getProperties().filter(isOwn);
        return [
          { name: declared.name, text: toLine(declared.getDocumentationComment(checker)) },
          ...members.map((member) => ({
            name: `${declared.name}.${member.name}`,
            text: toLine(member.getDocumentationComment(checker)),
          })),
        ];
      });
    },
  };

  /** Not of tRPC, of JavaScript's Error and so on. */
  function isOwn({ declarations = [] }: ts.Symbol): boolean {
    return declarations.some((node) => node.getSourceFile().fileName.includes('@animal-store/client'));
  }
}

function toLine(parts: ts.SymbolDisplayPart[] | undefined): string {
  return ts.displayPartsToString(parts).replaceAll(/\s+/g, ' ');
}
