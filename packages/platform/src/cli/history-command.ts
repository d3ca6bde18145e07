import { z } from 'zod';
import { DatabaseOutage, readCode } from '../connections/outage.js';
import type { KeyChange, KeyHistoryStore } from '../keys/history.js';
import { OperatorError } from '../operator-errors/operator-error.js';
import * as parse from './arguments.js';
import { defineCommand } from './key-command.js';
import { formatHistory } from './key-history-view.js';
import { ambiguous, expectFound, ID } from './key-selection.js';

/** How far back the history of all keys goes without --since. The history of one key goes as far as it is kept. */
const DEFAULT_DAYS = 7;
/** SQLSTATE */
const PERMISSION_DENIED = '42501';

export const HISTORY = defineCommand({
  name: 'history',
  description: `show who changed a key, or any key: in the last ${DEFAULT_DAYS} days, or as far back as --since says`,
  examples: ['--since 30d', ID, `${ID} --json`, '--delete-before 2026-01-01'],
  input: z
    .strictObject({
      id: parse.id.optional().describe('one key, even a deleted one: all of its changes on record'),
      since: parse.duration.optional().describe('how far back, in hours or days'),
      deleteBefore: parse.forTerminals(
        parse.pastDay
          .optional()
          .describe(
            'instead, delete the changes of all keys from before a day (UTC), as the owner of the tables',
          ),
      ),
    })
    .refine(({ id, deleteBefore }) => id === undefined || deleteBefore === undefined, {
      error: '{deleteBefore} is for all keys: leave out the {id}',
    })
    .refine(({ since, deleteBefore }) => since === undefined || deleteBefore === undefined, {
      error: '{deleteBefore} cannot be used with {since}',
    }),
  async run({ history }, { id, since, deleteBefore }) {
    if (deleteBefore !== undefined) {
      const deleted = await deleteHistory(history, deleteBefore);
      return { json: { deleted }, text: `${deleted} changes from before ${deleteBefore} were deleted.` };
    }
    const changes =
      id === undefined
        ? await history.read({ seconds: since ?? DEFAULT_DAYS * 86_400 })
        : await readHistory(history, id, since);
    return { json: changes, text: formatHistory(changes) };
  },
});

/** The history of the key whose id has this prefix. @throws OperatorError unless exactly one key has it */
async function readHistory(history: KeyHistoryStore, prefix: string, seconds?: number): Promise<KeyChange[]> {
  const ids = await history.findIds(prefix);
  if (ids.length > 1) throw ambiguous(prefix, ids);
  return history.read({ id: expectFound(prefix, ids[0]), seconds });
}

/** Returns how many changes there were. @throws OperatorError when the role may not delete any */
async function deleteHistory(history: KeyHistoryStore, day: string): Promise<number> {
  let deleted = 0;
  try {
    for (;;) {
      const count = await history.deleteBefore(new Date(`${day}T00:00:00Z`));
      if (count === 0) return deleted;
      deleted += count;
    }
  } catch (error) {
    if (!(error instanceof DatabaseOutage) || readCode(error.cause) !== PERMISSION_DENIED) throw error;
    throw new OperatorError(
      'The role of DATABASE_URL may not delete the history of keys: name the owner of the tables in DATABASE_URL.',
      { cause: error },
    );
  }
}
