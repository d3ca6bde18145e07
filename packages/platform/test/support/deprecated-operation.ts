import type { Definition } from '@animal-store/platform/definition';
import { INPUT_ERROR, int64, type Resource } from '@animal-store/platform/operations';
import { defineStore } from '@animal-store/platform/store';
import { z } from 'zod';

/** When the operation is removed */
export const REMOVAL = Date.parse('2030-12-05T00:00:00Z');
const MISSING_ID = 999_999;

const describeMissing = ({ oldId }: { oldId: number }) => `There is nothing old with the id ${oldId}.`;
/** A deprecated operation, whether or not the store has one. A service has it that is started with its resource. */
export function createDeprecated(definition: Definition) {
  const { ApiError, createProcedure } = defineStore(definition);
  const getOld = createProcedure()
    .meta({
      openapi: { method: 'GET', path: '/old/{oldId}', summary: 'Get what is old' },
      stability: 'stable',
      scope: definition.scopes[0],
      deprecation: {
        since: new Date('2025-12-05T00:00:00Z'),
        removal: new Date(REMOVAL),
        successor: '/new',
      },
    })
    .input(
      z.object({ oldId: int64().meta({ description: 'Identifier', examples: [7] }) }, { error: INPUT_ERROR }),
    )
    .output(z.object({ id: int64() }).meta({ id: 'Old', examples: [{ id: 7 }] }))
    .query(({ input }) => {
      if (input.oldId === MISSING_ID) throw new ApiError('not_found', { message: describeMissing(input) });
      return { id: input.oldId };
    });
  return {
    name: 'getOld',
    path: '/v1/old/7',
    input: { oldId: 7 },
    missingPath: `/v1/old/${MISSING_ID}`,
    missingInput: { oldId: MISSING_ID },
    resource: {
      name: 'old',
      description: 'What is old',
      createStore: () => ({}),
      procedures: { getOld },
    } satisfies Resource as Resource,
  };
}
