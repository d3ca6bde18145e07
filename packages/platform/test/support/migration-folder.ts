import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createTemporaryFolder } from '@animal-store/platform/testing';
import { onTestFinished } from 'vitest';

/** An empty folder of migrations, which goes when the test is over, and what adds one to it. */
export async function createMigrations() {
  const folder = await createTemporaryFolder();
  onTestFinished(() => rm(folder, { recursive: true }));
  const write = async (name: string, sql: string) => {
    await mkdir(join(folder, name), { recursive: true });
    await writeFile(join(folder, name, 'migration.sql'), sql);
  };
  return { folder, write };
}
