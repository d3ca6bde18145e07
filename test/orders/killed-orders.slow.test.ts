import { randomUUID } from 'node:crypto';
import { createCaller, post, until, untilListening } from '@animal-store/platform/testing';
import { expect, test } from 'vitest';
import { run } from '../support/programs.js';
import { useService } from '../support/service.js';
import { type Asked, ask, askOnce, protocolOf } from './ask.js';
import { expectSound } from './sound.js';

const ROUNDS = 30;

const { call, service } = useService();

/** Those of updateOrder are for an animal that has an order. */
const CALLS: readonly (readonly [operation: Asked, status?: string])[] = [
  ['createOrder'],
  ['createOrder'],
  ['updateOrder', 'cancelled'],
  ['updateOrder', 'delivered'],
  ['updatePet', 'available'],
];

test('a process that is killed in the middle of orders leaves no animal whose status contradicts them', {
  timeout: 300_000,
}, async ({ annotate }) => {
  let answered = 0;
  let lost = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    const program = run('main', [], { DATABASE_URL: service.databaseUrl, APP_ENV: 'staging', PORT: '0' });
    // Keys of that environment begin alike in all that are not production.
    const killed = createCaller({ url: await untilListening(program), key: service.key });
    const work = await Promise.all(
      Array.from({ length: 40 }, async (_, n) => {
        const [operation, status] = CALLS[n % CALLS.length] as (typeof CALLS)[number];
        const { body: pet } = await call('/v1/pets', post({ name: 'Rex', categoryId: 1 }));
        if (operation !== 'updateOrder') return { operation, petId: pet.id as number, status };
        const { result } = await ask('REST', call, 'createOrder', { petId: pet.id });
        return { operation, petId: pet.id as number, orderId: result.id as number, status };
      }),
    );
    let settled = 0;
    const sent = work.map(({ operation, petId, orderId, status }, n) => {
      const target = orderId === undefined ? { petId } : { orderId };
      const input = status === undefined ? target : { ...target, status };
      const key = operation === 'createOrder' ? { 'idempotency-key': randomUUID() } : {};
      return {
        again: () => ask(protocolOf(n), call, operation, input, key),
        first: askOnce(protocolOf(n), killed, operation, input, key).then(
          ({ code }) => {
            settled += 1;
            return code;
          },
          () => 'lost',
        ),
      };
    });
    // Each round one response later, so that each finds other transactions under way.
    await until(() => settled >= round || undefined);
    program.child.kill('SIGKILL');
    await program.ended;
    const codes = await Promise.all(sent.map(({ first }) => first));
    lost += codes.filter((code) => code === 'lost').length;
    answered += codes.filter((code) => code === undefined).length;
    await expect
      .poll(() => expectSound(service.databaseUrl).then(() => 'sound', String), { timeout: 10_000 })
      .toBe('sound');
    // What is sent again does what it would have done, or finds it done.
    const repeated = await Promise.all(sent.map(({ again }) => again()));
    expect(repeated.filter(({ code }) => code !== undefined)).toEqual([]);
    await expectSound(service.databaseUrl);
  }
  annotate(`${answered} answered, ${lost} lost`);
  expect(Math.min(answered, lost)).toBeGreaterThan(ROUNDS);
});
