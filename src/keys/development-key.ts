import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isInForce } from './authenticator.js';
import { hashKey, isWellFormedKey } from './format.js';
import type { KeyStore } from './store.js';

const FILE = 'development-key';

/**
 * The key that the embedded default prints at every start: the one kept in DATA_DIR, readable for its owner only, or a
 * new one when there is none that works.
 */
export async function provideDevelopmentKey(dataDir: string, store: KeyStore): Promise<string> {
  const path = join(dataDir, FILE);
  const kept = await readKept(path);
  if (kept !== undefined && (await works(kept, store))) return kept;
  const { key } = await store.create({
    name: 'development',
    plan: 'business',
    perMinute: null,
    perDay: null,
    expiresAt: null,
  });
  await writeFile(`${path}.new`, `${key}\n`, { mode: 0o600 });
  await rename(`${path}.new`, path);
  return key;
}

/** Whether DATA_DIR has seen a first start to its end. */
export async function hasDevelopmentKey(dataDir: string): Promise<boolean> {
  return (await readKept(join(dataDir, FILE))) !== undefined;
}

async function readKept(path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, 'utf8')).trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

async function works(key: string, store: KeyStore): Promise<boolean> {
  if (!isWellFormedKey(key, 'as_test_')) return false;
  const found = await store.findByHash(hashKey(key));
  return found !== undefined && isInForce(found, Date.now());
}
