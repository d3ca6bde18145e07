import { chmod, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A new folder for a DATA_DIR. Started as root, PostgreSQL runs as another account, which must be able to enter. */
export async function createTemporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'animal-store-test-'));
  await chmod(folder, 0o711);
  return folder;
}
