import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Caller, callerOf, createTestDatabase, post, type Service, startService } from './harness.js';
import { startWire, type Wire } from './wire.js';

let wire: Wire;
let service: Service;
let call: Caller;

beforeEach(async () => {
  const url = new URL(await createTestDatabase());
  wire = await startWire({ host: url.hostname, port: Number(url.port) });
  url.port = String(wire.port);
  service = await startService({ databaseUrl: url.href });
  call = callerOf(service);
  expect((await call('/v1/pets')).status).toBe(200);
});
afterEach(async () => {
  await service.close();
  await wire.close();
});

async function expectUnavailable(path: string, init: RequestInit = {}): Promise<void> {
  const started = Date.now();
  const { status, headers, body } = await call(path, init);
  expect(Date.now() - started).toBeLessThan(3_000);
  expect([path, status, headers.get('retry-after')]).toEqual([path, 503, '1']);
  const error = path.startsWith('/trpc') ? body.error.data.error : body;
  expect(error).toEqual({ code: 'service_unavailable', message: expect.any(String), status: 503 });
}

test.each(['cut', 'stall'] as const)(
  'PostgreSQL away (%s): 503 within 3 s on both faces, readiness says so, and it recovers by itself',
  async (fault) => {
    await wire[fault]();
    await expectUnavailable('/v1/pets');
    await Promise.all([
      expectUnavailable('/v1/pets/1'),
      expectUnavailable('/v1/pets', post({ name: 'Rex', categoryId: 1 })),
      expectUnavailable('/trpc/listPets'),
      expectUnavailable('/trpc/createPet', post({ name: 'Rex', categoryId: 1 })),
    ]);
    expect((await call('/health/ready', { key: null })).status).toBe(503);
    expect((await call('/health/live', { key: null })).status).toBe(200);
    await wire.mend();
    await expect.poll(async () => (await call('/v1/pets')).status, { timeout: 5_000 }).toBe(200);
    expect((await call('/health/ready', { key: null })).status).toBe(200);
  },
);

test('what needs no database is answered while it is away', async () => {
  await wire.cut();
  expect((await call('/v1/nope')).status).toBe(404);
  expect((await call('/v1/pets', { method: 'DELETE' })).status).toBe(405);
  expect((await call('/v1/pets', { key: null })).body.code).toBe('missing_api_key');
  expect((await call('/v1/pets', { key: 'nonsense' })).body.code).toBe('invalid_api_key');
});

test('a fault of ours is a 500 that tells the client nothing but the request id, on both faces', async () => {
  await service.database.pool.query('ALTER TABLE pets RENAME TO lost');
  for (const path of ['/v1/pets', '/trpc/listPets']) {
    const { status, headers, body } = await call(path, { headers: { 'x-request-id': 'my-id-1' } });
    const error = path.startsWith('/trpc') ? body.error.data.error : body;
    expect([status, error.code, error.status]).toEqual([500, 'internal_error', 500]);
    expect(headers.get('x-request-id')).toBe('my-id-1');
    expect(JSON.stringify(body)).not.toMatch(/pets" does|relation|prisma|stack|lost/i);
  }
});
