import { cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Definition } from '../definition/definition.js';

/** The models and migrations that this package brings */
const OWN_FOLDER = fileURLToPath(new URL('../../prisma/', import.meta.url));
const MODELS = 'platform.prisma';
const MIGRATIONS = 'migrations';

/** The names of the platform's migrations that a folder of migrations lacks, in order. */
export async function listMissing(migrationsFolder: string): Promise<string[]> {
  const [own, present] = await Promise.all([join(OWN_FOLDER, MIGRATIONS), migrationsFolder].map(listNames));
  return (own ?? []).filter((name) => !present?.includes(name));
}

type Sold = Pick<Definition, 'plans' | 'scopes' | 'defaultScopes'>;

/** The paths within a store's folder prisma/ that copyPlatformFiles would write. */
export async function listPlatformFiles(prismaFolder: string, sold: Sold): Promise<string[]> {
  const missing = await listMissing(join(prismaFolder, MIGRATIONS));
  const present = await readFile(join(prismaFolder, MODELS), 'utf8').catch(() => '');
  const isCurrent = present.replaceAll('\r\n', '\n') === (await renderModels(sold));
  return [...missing.map((name) => join(MIGRATIONS, name)), ...(isCurrent ? [] : [MODELS])];
}

/**
 * Copies into a store's folder prisma/ the migrations that it lacks, by their names, and writes the models there. A migration
 * that is there stays as it is.
 *
 * @returns the paths within the folder that are new or changed
 */
export async function copyPlatformFiles(prismaFolder: string, sold: Sold): Promise<string[]> {
  const paths = await listPlatformFiles(prismaFolder, sold);
  await mkdir(join(prismaFolder, MIGRATIONS), { recursive: true });
  for (const path of paths)
    if (path === MODELS) await writeFile(join(prismaFolder, MODELS), await renderModels(sold));
    else await cp(join(OWN_FOLDER, path), join(prismaFolder, path), { recursive: true });
  return paths;
}

/** The models with what the store decides, as Prisma compares both with its migrations: its plans and its scopes. */
async function renderModels({ plans, scopes, defaultScopes = scopes }: Sold): Promise<string> {
  const models = await readFile(join(OWN_FOLDER, MODELS), 'utf8');
  const list = defaultScopes.map((scope) => JSON.stringify(scope)).join(', ');
  const values = Object.keys(plans)
    .map((plan) => `  ${plan}\n`)
    .join('');
  return `${models.replace(/^ +scopes +String\[\]/m, `$&  @default([${list}])`)}
enum Plan {
${values}
  @@map("plan")
}
`;
}

/** None where there is no such folder. */
async function listNames(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  return entries
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort();
}
