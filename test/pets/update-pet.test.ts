import { createProtocols, message, PROTOCOLS, patient, post } from '@animal-store/platform/testing';
import { expect, test } from 'vitest';
import { newPet, type Pet, petChange } from '../../src/pets/schema.js';
import { resources } from '../../src/router.js';
import { useService } from '../support/service.js';

const { call: send } = useService();
const call = patient(send);

const protocols = createProtocols(resources)(call);

/** Members of a new animal that stay as they are. */
const UNCHANGEABLE: readonly string[] = [];

const patch = (body: unknown) => ({ ...post(body), method: 'PATCH' });

/** The ways to change an animal: each responds with it, or with the body of an error. */
const UPDATES = PROTOCOLS.map((protocol) => {
  const update = async (petId: unknown, change: object) => {
    const { code, result } = await protocols[protocol]('updatePet', {
      petId,
      ...change,
    });
    // A tool says besides what to do next.
    return code === undefined ? result : { ...result, message: result.message.replace(/\. .*/, '.') };
  };
  return [protocol, update] as const;
});

async function addPet(): Promise<Pet> {
  return (await call('/v1/pets', post({ name: 'Rex', categoryId: 7 }))).body;
}

const read = async ({ id }: Pet): Promise<Pet> => (await call(`/v1/pets/${id}`)).body;

test.each(UPDATES)('over %s what is sent changes, and what is left out stays', async (_protocol, update) => {
  const added = await addPet();
  const changes = [{ status: 'sold' }, { name: ' Max ✨' }, { categoryId: -(2 ** 53 - 1) }];
  let expected = added;
  for (const change of [...changes, { name: 'Rex', categoryId: 7, status: 'available' }]) {
    expected = { ...expected, ...change } as Pet;
    expect(await update(added.id, change)).toEqual(expected);
    expect(await read(added)).toEqual(expected);
  }
});

/** What is compared, and never changed, is no change. */
const { petId: _petId, expectedStatus: _expectedStatus, ...changes } = petChange.shape;
const MEMBERS = Object.keys(changes);

test('every member of a new animal can be changed, but those that are named above', () => {
  expect([...MEMBERS, ...UNCHANGEABLE].sort()).toEqual(Object.keys(newPet.shape).sort());
});

test('any status may follow any other, and itself', async () => {
  const { id } = await addPet();
  const statuses = ['available', 'pending', 'sold'];
  for (const before of statuses)
    for (const after of statuses) {
      await call(`/v1/pets/${id}`, patch({ status: before }));
      const { status, body } = await call(`/v1/pets/${id}`, patch({ status: after }));
      expect([status, body.status]).toEqual([200, after]);
    }
});

test('of two clerks at once the last one wins, each member by itself', async () => {
  const added = await addPet();
  const rounds = 20;
  for (let round = 0; round < rounds; round += 1) {
    const changes = [
      { name: `Rex ${round}` },
      { categoryId: round },
      { status: round % 2 ? 'sold' : 'pending' },
    ];
    const by = (n: number) => UPDATES[(n + round) % UPDATES.length]?.[1];
    await Promise.all(changes.map((change, n) => by(n)?.(added.id, change)));
    expect(await read(added)).toEqual(Object.assign({ id: added.id }, ...changes));
  }
});

test.each(UPDATES)(
  'over %s a change without a known member is a 400 that names them',
  async (_protocol, update) => {
    const added = await addPet();
    const error = {
      code: 'invalid_request',
      message: `At least one of ${new Intl.ListFormat('en-GB').format(MEMBERS)} is required.`,
      status: 400,
    };
    for (const change of [{}, { expectedStatus: added.status }])
      expect(await update(added.id, change)).toEqual(error);
    expect(await read(added)).toEqual(added);
  },
);

test('unknown members are ignored, and the id of the path is the one that counts', async () => {
  const [added, other] = [await addPet(), await addPet()];
  const change = { status: 'sold', petId: other.id, id: other.id, price: 3 };
  expect((await call(`/v1/pets/${added.id}`, patch(change))).body).toEqual({ ...added, status: 'sold' });
  expect(await read(other)).toEqual(other);
  expect((await call(`/v1/pets/${added.id}`, patch({ price: 3 }))).status).toBe(400);
});

/** The error where the status that a form expects is not the one that the animal has. */
const changedTo = (status: string) => ({
  code: 'pet_status_changed',
  message: `The status of the animal is ${status} by now, so nothing was changed: load the animal again.`,
  status: 409,
});

test.each(UPDATES)(
  'over %s a change is done where the animal has the status that it expects, and else told which one it has',
  async (_protocol, update) => {
    const added = await addPet();
    const sold = { ...added, status: 'sold' };
    expect(await update(added.id, { status: 'sold', expectedStatus: 'available' })).toEqual(sold);
    for (const change of [{ status: 'available' }, { status: 'sold' }, { name: 'Max' }, { categoryId: 8 }])
      expect(await update(added.id, { ...change, expectedStatus: 'available' })).toEqual(changedTo('sold'));
    expect(await read(added)).toEqual(sold);
    const change = { name: 'Max', expectedStatus: 'sold' };
    expect(await update(added.id, change)).toEqual({ ...sold, name: 'Max' });
    expect(await update(999_999, change)).toMatchObject({ code: 'not_found' });
  },
);

test.each(UPDATES)(
  'over %s a form that was loaded before an order is told the status, while the order is open and when it has ended',
  async (_protocol, update) => {
    const added = await addPet();
    const { id: _id, ...loaded } = added;
    const form = { ...loaded, expectedStatus: loaded.status };
    const { body: order } = await call('/v1/store/orders', post({ petId: added.id }));
    for (const change of [form, { ...form, status: 'sold' }, { name: 'Max', expectedStatus: 'available' }])
      expect(await update(added.id, change)).toEqual(changedTo('pending'));
    expect(await update(added.id, { status: 'sold', expectedStatus: 'pending' })).toMatchObject({
      code: 'pet_has_open_order',
    });
    await call(`/v1/store/orders/${order.id}`, patch({ status: 'delivered' }));
    expect(await update(added.id, form)).toEqual(changedTo('sold'));
    expect(await read(added)).toEqual({ ...added, status: 'sold' });
  },
);

test('its answers announce no end, unlike those of the deprecated GET of its path', async () => {
  const { id } = await addPet();
  const { headers } = await call(`/v1/pets/${id}`, patch({ status: 'sold' }));
  for (const name of ['deprecation', 'sunset', 'link']) expect(headers.get(name)).toBeNull();
  expect((await call(`/v1/pets/${id}`)).headers.get('sunset')).not.toBeNull();
});

test('as a tool it says that it changes something, and that a repetition changes nothing further', async () => {
  const { tools } = (await call('/mcp', message('tools/list'))).body.result;
  const { annotations } = tools.find(({ name }: { name: string }) => name === 'updatePet');
  expect(annotations).toEqual({
    readOnlyHint: false,
    destructiveHint: true,
    idempotentHint: true,
    openWorldHint: false,
  });
});
