import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import ts from 'typescript';
import { afterAll, beforeAll, expect, test } from 'vitest';

const DOCUMENT = resolve('docs/openapi.json');
/** Each loads a compiler twice, which a busy machine does slowly. */
const TIMEOUT_MS = 120_000;

/** What a front-end writes with the types NewPet and Pet. */
const USE = `
export const withoutStatus: NewPet = { name: 'Rex', categoryId: 1 };
export const withStatus: NewPet = { name: 'Rex', categoryId: 1, status: 'sold' };
// @ts-expect-error no such status
export const wrongStatus: NewPet = { name: 'Rex', categoryId: 1, status: 'lost' };
// @ts-expect-error the name is required
export const withoutName: NewPet = { categoryId: 1 };
export const readStatus = (pet: Pet): 'available' | 'pending' | 'sold' => pet.status;
export const readId = (pet: Pet): number => pet.id;
`;

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'animal-store-generators-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Each with only its input and output, the way the first page of its manual shows it. */
test.each([
  {
    generator: 'openapi-typescript',
    args: [DOCUMENT, '--output', 'openapi-typescript/api.ts'],
    imports: `import type { components } from './api.js';
type NewPet = components['schemas']['NewPet'];
type Pet = components['schemas']['Pet'];`,
  },
  {
    generator: 'orval',
    args: ['--input', DOCUMENT, '--output', 'orval/api.ts'],
    imports: `import type { NewPet, Pet } from './api.js';`,
  },
  {
    generator: 'openapi-ts',
    args: ['--input', DOCUMENT, '--output', 'openapi-ts'],
    imports: `import type { NewPet, Pet } from './index.js';`,
  },
])(
  '$generator with its default options makes only the status of a NewPet optional',
  async ({ generator, args, imports }) => {
    await promisify(execFile)(resolve('node_modules/.bin', generator), args, { cwd: folder });
    const file = join(folder, generator, 'use.ts');
    await writeFile(file, imports + USE);
    expect(check(file)).toBe('');
  },
  TIMEOUT_MS,
);

/** The errors of one file, whose imports may need packages that are not here, such as an HTTP client. */
function check(file: string): string {
  const program = ts.createProgram([file], {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    exactOptionalPropertyTypes: true,
    target: ts.ScriptTarget.ES2023,
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
  });
  const errors = ts.getPreEmitDiagnostics(program, program.getSourceFile(file));
  return ts.formatDiagnostics(errors, {
    getCanonicalFileName: (name) => name,
    getCurrentDirectory: () => folder,
    getNewLine: () => '\n',
  });
}
