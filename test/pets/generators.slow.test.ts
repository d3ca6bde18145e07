import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { z } from 'zod';
import { ApiError } from '../../packages/platform/src/errors/api-error.js';
import { newPet } from '../../src/pets/schema.js';

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
  // What they write imports zod.
  await symlink(resolve('node_modules'), join(folder, 'node_modules'));
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
    await promisify(execFile)(resolve('scripts/checkers/node_modules/.bin', generator), args, {
      cwd: folder,
    });
    const file = join(folder, generator, 'use.ts');
    await writeFile(file, imports + USE);
    expect(check(file)).toBe('');
  },
  TIMEOUT_MS,
);

const PET = { id: 7, name: 'Rex', categoryId: 3, status: 'available' };
/**
 * What the service accepts and refuses. The generators write no exact schema of two things, whatever the document says:
 * both count UTF-16 units where JSON Schema counts code points, and orval takes an integer for any number.
 */
const NEW_PETS = [
  ...['Rex', ' Rex ', '\u00a0a', '\ufeff', 'a\nb', '\u2028a', 'x'.repeat(200)].map((name) => ({
    name,
    categoryId: 1,
  })),
  ...['', ' ', '\u0085', '\u2003', '\t\r\n', 'x'.repeat(201), 3, null].map((name) => ({
    name,
    categoryId: 1,
  })),
  ...[0, -1, 2 ** 53 - 1, 2 ** 53, -(2 ** 53), 'x', null].map((categoryId) => ({
    name: 'Rex',
    categoryId,
  })),
  ...['sold', 'lost', '', null].map((status) => ({ name: 'Rex', categoryId: 1, status })),
  { name: 'Rex' },
  { categoryId: 1 },
  { name: 'Rex', categoryId: 1, color: 'red' },
  [],
  null,
];

interface Schemas {
  readonly newPet: z.ZodType;
  readonly pet: z.ZodType;
  /** Of an error. orval writes no schemas of errors. */
  readonly error?: z.ZodType;
}

describe.each<{
  generator: string;
  args: string[];
  file: string;
  pick: (module: Record<string, z.ZodType>) => Schemas;
}>([
  {
    generator: 'openapi-ts',
    args: ['--input', DOCUMENT, '--output', 'openapi-ts-zod', '--plugins', '@hey-api/typescript', 'zod'],
    file: 'openapi-ts-zod/zod.gen.ts',
    pick: ({ zNewPet, zPet, zError }) => ({ newPet: zNewPet, pet: zPet, error: zError }) as Schemas,
  },
  {
    generator: 'orval',
    args: ['--input', DOCUMENT, '--output', 'orval-zod/api.ts', '--client', 'zod'],
    file: 'orval-zod/api.ts',
    pick: ({ createPetBody, getPetResponse }) => ({ newPet: createPetBody, pet: getPetResponse }) as Schemas,
  },
])('$generator with zod', ({ generator, args, file, pick }) => {
  let schemas: Schemas;

  beforeAll(async () => {
    await promisify(execFile)(resolve('scripts/checkers/node_modules/.bin', generator), args, {
      cwd: folder,
    });
    schemas = pick(await import(pathToFileURL(join(folder, file)).href));
  }, TIMEOUT_MS);

  test('compiles, and has no byte for which tools would take it for binary', {
    timeout: TIMEOUT_MS,
  }, async () => {
    expect(check(join(folder, file))).toBe('');
    const generated = resolve(folder, file, '..');
    for (const name of await readdir(generated)) {
      const text = await readFile(join(generated, name), 'utf8');
      expect([name, text.includes('\0')]).toEqual([name, false]);
    }
  });

  test.each(NEW_PETS)('accepts or refuses as the service does: %j', (value) => {
    expect(schemas.newPet.safeParse(value).success).toBe(newPet.safeParse(value).success);
  });

  test('accepts a response with a member, and an error with a code, that a later version adds', () => {
    expect(schemas.pet.safeParse({ ...PET, color: 'red' }).error).toBeUndefined();
    const { body } = new ApiError('not_found');
    for (const later of [body, { ...body, code: 'on_holiday', hint: 'tomorrow' }])
      expect(schemas.error?.safeParse(later).error).toBeUndefined();
    expect(schemas.pet.safeParse({ ...PET, status: 'lost' }).success).toBe(false);
  });
});

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
