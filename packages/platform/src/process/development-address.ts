import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const FILE = 'development-address';

/**
 * Stores the address of a service on the embedded database beside its development key, in DATA_DIR: for programs that a
 * developer starts next to it, such as the storefront. If the file cannot be written, they do not find the service.
 */
export async function recordAddress(dataDir: string, url: string): Promise<void> {
  await writeFile(join(dataDir, FILE), `${url}\n`).catch(() => {});
}

/** A killed process leaves the address behind, so a reader has to check that the key is known there. */
export async function forgetAddress(dataDir: string): Promise<void> {
  await rm(join(dataDir, FILE), { force: true }).catch(() => {});
}
