import { type Command, Option } from 'commander';
import { DatabaseOutage, readCode } from '../connections/outage.js';
import { OperatorError } from '../errors/operator-error.js';
import type { KeyChange, KeyHistoryStore } from '../keys/history.js';
import * as parse from './arguments.js';
import { ambiguous, expectFound, ID, type KeyCommand } from './key-command.js';
import { formatHistory } from './key-history-view.js';

/** How far back the history of all keys goes without --since; that of one key goes as far as it is kept. */
const DEFAULT_SECONDS = 7 * 86_400;
/** SQLSTATE */
const PERMISSION_DENIED = '42501';

interface HistoryOptions {
  readonly since?: number;
  /** The first day that is kept */
  readonly deleteBefore?: string;
}

export const HISTORY: KeyCommand = {
  name: 'history',
  description: 'show who changed a key, or any: in the last 7 days, or as far back as --since says',
  examples: ['--since 30d', ID, `${ID} --json`, '--delete-before 2026-01-01'],
  addArguments(command) {
    command
      .argument('[id]', 'one key, also one that is gone: all of its changes on record', parse.parseId)
      .option('--since <duration>', 'only the changes of the last so many hours or days', parse.parseDuration)
      .addOption(
        new Option(
          '--delete-before <day>',
          'instead, delete the changes of all keys from before a day (UTC); only the owner of the tables may',
        )
          .argParser(parse.parsePastDay)
          .conflicts('since'),
      )
      .hook('preAction', () => {
        if (command.args.length > 0 && command.opts<HistoryOptions>().deleteBefore !== undefined)
          command.error('error: --delete-before is about all keys, and takes no id');
      });
  },
  async run({ history }, command) {
    const { since, deleteBefore } = command.opts<HistoryOptions>();
    if (deleteBefore !== undefined) {
      const deleted = await deleteHistory(history, deleteBefore);
      return { json: { deleted }, text: `${deleted} changes from before ${deleteBefore} were deleted.` };
    }
    const changes =
      command.args.length === 0
        ? await history.read({ seconds: since ?? DEFAULT_SECONDS })
        : await readHistory(history, command, since);
    return { json: changes, text: formatHistory(changes) };
  },
};

/** The history of the key whose id has this prefix. @throws OperatorError unless exactly one key has it */
async function readHistory(
  history: KeyHistoryStore,
  command: Command,
  seconds?: number,
): Promise<KeyChange[]> {
  const prefix: string = command.processedArgs[0];
  const ids = await history.findIds(prefix);
  if (ids.length > 1) throw ambiguous(prefix, ids);
  return history.read({ id: expectFound(prefix, ids[0]), seconds });
}

/** Returns how many changes there were. @throws OperatorError when the role may not */
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
      'The role of DATABASE_URL may not delete what is on record about keys: name the owner of the tables in DATABASE_URL.',
      { cause: error },
    );
  }
}
