import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { readConfig } from '../src/config.js';
import { openDatabase } from '../src/database/client.js';
import { seedCatalogue } from '../src/database/source.js';
import { createService } from '../src/service.js';

/** The service in a process of its own, which tells its parent where it listens and what CPU it has used. */
const databaseUrl = process.env.DATABASE_URL ?? '';
const database = openDatabase(databaseUrl, () => {});
await seedCatalogue(database.pool);
const { app, keys } = await createService({
  config: { ...readConfig({}), corsOrigins: [] },
  database,
  log: pino({ level: 'silent' }),
});
const issue = async (perDay: number) => {
  const { key } = await keys.create({
    name: 'bench',
    plan: 'enterprise',
    perMinute: 2 ** 31 - 1,
    perDay,
    expiresAt: null,
  });
  return key;
};
await app.listen({ port: 0, host: '127.0.0.1' });
process.on('message', () => {
  const { user, system } = process.cpuUsage();
  process.send?.(user + system);
});
const { port } = app.server.address() as AddressInfo;
process.send?.({ port, admitted: await issue(2 ** 31 - 1), refused: await issue(1) });
process.on('disconnect', () => process.exit());
