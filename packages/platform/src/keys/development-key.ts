import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { OperatorError } from '../operator-errors/operator-error.js';
import { isActive } from './api-key.js';
import { hashKey, isWellFormedKey, type KeyPrefix } from './format.js';
import type { KeyStore } from './store.js';

const FILE = 'development-key';

/**
 * The key that every start on the embedded database prints: the one stored in DATA_DIR, readable only by its owner, or a
 * new key if that one does not work.
 *
 * @throws OperatorError when it cannot be stored
 */
export async function provideDevelopmentKey(
  dataDir: string,
  store: KeyStore,
  { plan, prefix }: { readonly plan: string; readonly prefix: KeyPrefix },
): Promise<string> {
  const path = join(dataDir, FILE);
  const stored = await readStoredKey(path);
  if (stored !== undefined && (await isUsable(stored, store, prefix))) return stored;
  const { key } = await store.create({
    name: 'development',
    plan,
    perMinute: null,
    perDay: null,
    expiresAt: null,
  });
  try {
    await writeFile(`${path}.new`, `${key}\n`, { mode: 0o600 });
    await rename(`${path}.new`, path);
  } catch (error) {
    const { message } = error as Error;
    throw new OperatorError(
      `The development key cannot be stored as ${path} (${message}): make DATA_DIR writable, with free space, or set it to another folder.`,
    );
  }
  return key;
}

/** Whether a first start on DATA_DIR has completed. */
export async function hasDevelopmentKey(dataDir: string): Promise<boolean> {
  return (await readStoredKey(join(dataDir, FILE))) !== undefined;
}

async function readStoredKey(path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, 'utf8')).trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

async function isUsable(key: string, store: KeyStore, prefix: KeyPrefix): Promise<boolean> {
  if (!isWellFormedKey(key, prefix)) return false;
  const [found] = await store.findByHashes([hashKey(key)]);
  return found !== undefined && isActive(found, Date.now());
}
