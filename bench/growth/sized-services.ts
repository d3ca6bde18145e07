import type pg from 'pg';
import { pino } from 'pino';
import { openDatabase } from '../../src/database/client.js';
import { createPetStore, type PetStore } from '../../src/pets/store.js';
import { readConfig } from '../../src/process/config.js';
import { createService, type Service } from '../../src/service.js';
import { THIS_CHECKOUT } from '../checkout.js';
import { startPostgres, withClient } from '../postgres.js';

/** The service on a database of a certain size. */
interface SizedService extends Pick<Service, 'keys'> {
  readonly pets: PetStore;
  readonly size: number;
  readonly databaseUrl: string;
}

export interface SizedServices {
  readonly services: readonly SizedService[];
  close(): Promise<void>;
}

/** Composes one service per size in this process, all on one PostgreSQL, so that measurements can alternate. */
export async function openSizes(
  sizes: readonly number[],
  fill: (client: pg.Client, size: number) => Promise<void>,
): Promise<SizedServices> {
  const postgres = await startPostgres();
  const services: (SizedService & { close(): Promise<void> })[] = [];
  const close = async () => {
    for (const service of services) await service.close();
    await postgres.close();
  };
  try {
    for (const size of sizes) {
      const startedAt = performance.now();
      const databaseUrl = await postgres.createDatabase(`size_${size}`, THIS_CHECKOUT);
      await withClient(databaseUrl, (client) => fill(client, size));
      services.push({ size, databaseUrl, ...(await composeService(databaseUrl)) });
      const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
      process.stderr.write(`${size.toLocaleString('en')} rows loaded in ${seconds} s\n`);
    }
  } catch (error) {
    await close();
    throw error;
  }
  return { services, close };
}

async function composeService(databaseUrl: string) {
  const database = openDatabase(databaseUrl, () => {});
  const service = await createService({
    config: readConfig({}),
    database,
    log: pino({ level: 'silent' }),
  });
  return {
    keys: service.keys,
    pets: createPetStore(database),
    async close() {
      await service.app.close();
      await service.close();
      await database.close();
    },
  };
}
