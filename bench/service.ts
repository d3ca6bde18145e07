import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { buildApp } from '../src/app.js';
import { openDatabase } from '../src/database/client.js';
import { seedCatalogue } from '../src/database/source.js';
import { createAuthenticator } from '../src/keys/authenticator.js';
import { createKeyStore } from '../src/keys/store.js';
import { createLimiter } from '../src/limits/limiter.js';
import { createOrderStore } from '../src/orders/store.js';
import { createPetStore } from '../src/pets/store.js';

/** The service in a process of its own, which tells its parent where it listens and what CPU it has used. */
const database = openDatabase(process.env.DATABASE_URL ?? '', () => {});
await seedCatalogue(database.pool);
const keys = createKeyStore(database, 'as_test_');
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
const log = pino({ level: 'silent' });
const app = await buildApp({
  log,
  service: { pets: createPetStore(database), orders: createOrderStore(database), now: Date.now },
  authenticator: createAuthenticator({ store: keys, prefix: 'as_test_', now: Date.now }),
  limiter: createLimiter({ redisUrls: [], log }),
  checkDatabase: async () => {},
  publicUrl: () => 'http://127.0.0.1',
  document: () => ({}),
  anonymousPerMinute: 300,
  corsOrigins: [],
  trustProxy: [],
});
await app.listen({ port: 0, host: '127.0.0.1' });
process.on('message', () => {
  const { user, system } = process.cpuUsage();
  process.send?.(user + system);
});
const { port } = app.server.address() as AddressInfo;
process.send?.({ port, admitted: await issue(2 ** 31 - 1), refused: await issue(1) });
process.on('disconnect', () => process.exit());
