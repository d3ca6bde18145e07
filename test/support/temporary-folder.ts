import { chmod, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A new folder for a DATA_DIR. Run as root, PostgreSQL is another account, which has to get through. */
export async function createTemporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'animal-store-test-'));
  await chmod(folder, 0o711);
  return folder;
}
