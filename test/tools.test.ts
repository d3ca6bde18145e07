import { message } from '@animal-store/platform/testing';
import { expect, test } from 'vitest';
import { useService } from './support/service.js';

const { call } = useService();

interface ListedTool {
  readonly name: string;
  readonly annotations: { readonly readOnlyHint: boolean; readonly destructiveHint: boolean };
}

const describe = ({ readOnlyHint, destructiveHint }: ListedTool['annotations']) =>
  readOnlyHint ? 'reads' : destructiveHint ? 'overwrites' : 'adds';

test('a client that asks before it overwrites something is told by every tool whether it does', async () => {
  const { tools } = (await call('/mcp', message('tools/list'))).body.result;
  const hints = tools.map(({ name, annotations }: ListedTool) => [name, describe(annotations)]);
  expect(Object.fromEntries(hints)).toEqual({
    listPets: 'reads',
    createPet: 'adds',
    updatePet: 'overwrites',
    listOrders: 'reads',
    // An order takes the animal from all other callers.
    createOrder: 'overwrites',
    getOrder: 'reads',
    updateOrder: 'overwrites',
    listCategories: 'reads',
    nameCategory: 'overwrites',
    getKey: 'reads',
  });
  for (const { annotations } of tools)
    expect(annotations.readOnlyHint && annotations.destructiveHint).toBe(false);
});
