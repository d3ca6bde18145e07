import { z } from 'zod';
import type { Definition } from '../definition/definition.js';
import type { ApiKey, ListedKey } from '../keys/api-key.js';
import { OperatorError } from '../operator-errors/operator-error.js';
import { maskControls } from '../process/terminal-text.js';
import * as parse from './arguments.js';
import type { KeyTools } from './key-command.js';
import { formatKeys } from './key-view.js';
import { idOrHint, isKeyHint } from './store-arguments.js';

type FindingTools = Pick<KeyTools, 'definition' | 'store'>;

/** The id in examples */
export const ID = '0b54e7c0';

/** The argument of a command on one key, for `findKey` */
export const ONE_KEY = {
  id: parse.id.describe('the id of the key, as "keys list" shows it, or the beginning of that id'),
};

/** The argument of a command that also takes the first characters of the key. */
export const oneKeyOrHint = (definition: Definition) => ({
  id: idOrHint(definition).describe(
    'the id of the key or its beginning, or the first characters of the key, as "keys list" shows them',
  ),
});

/** Finds the key of an argument. @throws OperatorError unless exactly one matches */
export async function findKey({ definition, store }: FindingTools, prefix: string): Promise<ListedKey> {
  const isHint = isKeyHint(definition, prefix);
  const found = await (isHint ? store.findByHint(prefix) : store.findByIdPrefix(prefix));
  if (found.length <= 1) return expectFound(prefix, found[0], isHint ? 'that starts with' : 'with the id');
  throw ambiguous(
    prefix,
    found.map(({ id, name }) => `${id}  ${name}`),
    isHint,
  );
}

export function ambiguous(prefix: string, candidates: readonly string[], isHint = false): OperatorError {
  const lines = candidates.map((candidate) => `\n  ${maskControls(candidate)}`).join('');
  const subject = `${isHint ? '' : 'The ids of '}${candidates.length} keys`;
  return new OperatorError(`${subject} start with ${prefix}:${lines}`, { exitCode: 2 });
}

/** For the result of an update, because the key may be gone since it was found. @throws OperatorError */
export function expectFound<T>(id: string, found: T | undefined, what = 'with the id'): T {
  if (found !== undefined) return found;
  throw new OperatorError(`There is no key ${what} ${id}: "keys list" shows all.`, { exitCode: 3 });
}

/** @throws OperatorError when the key is revoked, which nothing undoes */
export function usableId({ id, revokedAt }: ApiKey): string {
  if (revokedAt === null) return id;
  const advice = 'a revoked key stays revoked. Issue another with: keys create';
  throw new OperatorError(`The key ${id} is revoked, so nothing was changed: ${advice}`);
}

const SELECTION = {
  id: parse.id.optional().describe('the id of the key, or its beginning'),
  owner: parse.owner.describe('all keys of this owner that are not revoked, instead of an id'),
  yes: parse.flag('with --owner: make the change; without --yes, the keys are only shown'),
};

type Selection = z.output<z.ZodObject<typeof SELECTION>>;

/** The input of a command on one key, or on all keys of an owner: for `selectKeys` */
export function selecting<Own extends z.ZodRawShape>(own: Own) {
  // TypeScript does not know that an object with further members is a selection.
  const where = (isValid: (selection: Selection) => boolean) => (input: unknown) =>
    isValid(input as Selection);
  return z
    .strictObject({ ...SELECTION, ...own })
    .refine(
      where(({ id, owner }) => (id === undefined) !== (owner === undefined)),
      { error: 'name one key by its {id}, or all keys of an owner with {owner}' },
    )
    .refine(
      where(({ yes, owner }) => !yes || owner !== undefined),
      { error: '{yes} belongs to {owner}' },
    );
}

/**
 * The keys that a command is to change, and whether one was named by its id. `wouldBe` says what would happen to the
 * keys, such as `revoked`.
 *
 * @throws OperatorError with the keys of the owner, if there is no --yes; and when there is no such key
 */
export async function selectKeys(
  tools: FindingTools,
  { id = '', owner, yes }: Selection,
  wouldBe: string,
): Promise<{ readonly apiKeys: readonly ListedKey[]; readonly isOne: boolean }> {
  if (owner === undefined) return { apiKeys: [await findKey(tools, id)], isOne: true };
  const apiKeys = (await tools.store.findByOwner(owner)).filter(({ revokedAt }) => revokedAt === null);
  const count = apiKeys.length === 1 ? 'This key' : `These ${apiKeys.length} keys`;
  if (apiKeys.length === 0) {
    const problem = `All keys of the owner ${JSON.stringify(owner)} are revoked, or it has none`;
    throw new OperatorError(`${problem}: "keys list" shows all keys and their owners.`, { exitCode: 3 });
  }
  if (!yes) {
    const list = formatKeys(tools.definition, apiKeys, Date.now());
    const advice = 'Nothing was changed: add {yes} to do it.';
    throw new OperatorError(`${count} would be ${wouldBe}:\n\n${list}\n\n${advice}`, { exitCode: 2 });
  }
  return { apiKeys, isOne: false };
}
