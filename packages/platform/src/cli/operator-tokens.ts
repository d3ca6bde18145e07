import { createHash, timingSafeEqual } from 'node:crypto';
import { readBearerKey } from '../keys/format.js';
import { OperatorError } from '../operator-errors/operator-error.js';
import { readSecretFiles, type Variables } from '../process/secret-files.js';

/** 32 characters are 128 bits in hexadecimal. */
const TOKEN = /^[!-~]{32,}$/;
/** Shorter than a token, so that neither passes for the other */
const NAME = /^[A-Za-z\d][\w.-]{0,30}$/;
/** While one token is replaced by another, a program has both. */
const MOST_PER_NAME = 2;
const INVALID =
  'KEYS_TOKEN, or the file KEYS_TOKEN_FILE, must hold a token of at least 32 visible ASCII characters, such as from "openssl rand -hex 32". ' +
  'A line may name the program that has it: NAME TOKEN, with a name of at most 31 letters, digits, "_", "-" and ".". A name may have two tokens, and so may no name. No token may be repeated.';

/** As somebody writes it who takes the file for a shell's */
const QUOTED = /(?:^|\s)["']|["'](?:\s|$)/;
const IN_QUOTES =
  'A token of KEYS_TOKEN, or of the file KEYS_TOKEN_FILE, begins or ends with a quote, which would be part of it: write it without quotes.';

/** A program that has a token. */
export interface Operator {
  /** Undefined where the token stands alone */
  readonly name: string | undefined;
}

/**
 * Returns a function that finds the program whose token an Authorization header has, among those of KEYS_TOKEN, or of
 * KEYS_TOKEN_FILE as it is now. While that file has no valid tokens, the last ones count.
 *
 * @param warn called with what has become wrong with the file
 * @throws OperatorError when there is no valid token to begin with
 */
export function createTokenCheck(
  { KEYS_TOKEN, KEYS_TOKEN_FILE }: Variables,
  warn: (message: string) => void,
): (authorization: string | undefined) => Operator | undefined {
  // An empty variable counts as unset.
  const variables = { KEYS_TOKEN: KEYS_TOKEN || undefined, KEYS_TOKEN_FILE: KEYS_TOKEN_FILE || undefined };
  let operators: readonly HashedOperator[] = [];
  /** Returns what is wrong. */
  const read = (): string | undefined => {
    const { set, problems } = readSecretFiles(variables, ['KEYS_TOKEN'], true);
    const text = set.KEYS_TOKEN?.trim() ?? '';
    if (problems.length > 0) return problems[0];
    if (QUOTED.test(text)) return IN_QUOTES;
    const found = text.split(/\s*\n\s*/).flatMap(parseLine);
    if (!areValid(found)) return INVALID;
    operators = found.map(({ name, token }) => ({ name, hash: hash(token) }));
    return undefined;
  };
  let problem = read();
  if (problem !== undefined) throw new OperatorError(problem);
  return (authorization = '') => {
    const previous = problem;
    if (variables.KEYS_TOKEN_FILE !== undefined) problem = read();
    if (problem !== undefined && problem !== previous) warn(problem);
    const sent = hash(readBearerKey(authorization) ?? '');
    return operators.find((each) => timingSafeEqual(each.hash, sent));
  };
}

interface HashedOperator extends Operator {
  readonly hash: Buffer;
}

interface NamedToken extends Operator {
  readonly token: string;
}

/** `NAME TOKEN`, or tokens alone */
function parseLine(line: string): NamedToken[] {
  const words = line.split(/\s+/);
  const [name = '', token = ''] = words;
  if (words.length === 2 && NAME.test(name)) return [{ name, token }];
  return words.map((word) => ({ name: undefined, token: word }));
}

function areValid(tokens: readonly NamedToken[]): boolean {
  const counts = new Map<string | undefined, number>();
  for (const { name } of tokens) counts.set(name, (counts.get(name) ?? 0) + 1);
  return (
    new Set(tokens.map(({ token }) => token)).size === tokens.length &&
    tokens.every(({ token }) => TOKEN.test(token)) &&
    [...counts.values()].every((count) => count <= MOST_PER_NAME)
  );
}

/** Hashes have one length, which is what a comparison in constant time needs. */
function hash(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
