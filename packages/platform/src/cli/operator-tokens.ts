import { createHash, timingSafeEqual } from 'node:crypto';
import { OperatorError } from '../errors/operator-error.js';
import { readBearerKey } from '../keys/format.js';
import { readSecretFiles, type Variables } from '../process/secret-files.js';

/** One token, or two while one is replaced by the other. 32 characters are 128 bits in hexadecimal. */
const TOKENS = /^[!-~]{32,}(?:\s+[!-~]{32,})?$/;
const INVALID =
  'KEYS_TOKEN, or the file KEYS_TOKEN_FILE, must hold a token of at least 32 visible ASCII characters, such as from "openssl rand -hex 32", or two of them.';

/** As somebody writes it who takes the file for a shell's */
const QUOTED = /(?:^|\s)["']|["'](?:\s|$)/;
const IN_QUOTES =
  'A token of KEYS_TOKEN, or of the file KEYS_TOKEN_FILE, begins or ends with a quote, which would be part of it: write it without quotes.';

/**
 * Returns a function that says whether an Authorization header has a token of KEYS_TOKEN, or of KEYS_TOKEN_FILE as it is
 * now. While that file has no valid token, the last ones count.
 *
 * @param warn called with what has become wrong with the file
 * @throws OperatorError when there is no valid token to begin with
 */
export function createTokenCheck(
  { KEYS_TOKEN, KEYS_TOKEN_FILE }: Variables,
  warn: (message: string) => void,
): (authorization: string | undefined) => boolean {
  // An empty variable counts as unset.
  const variables = { KEYS_TOKEN: KEYS_TOKEN || undefined, KEYS_TOKEN_FILE: KEYS_TOKEN_FILE || undefined };
  let hashes: readonly Buffer[] = [];
  /** Returns what is wrong. */
  const read = (): string | undefined => {
    const { set, problems } = readSecretFiles(variables, ['KEYS_TOKEN'], true);
    const text = set.KEYS_TOKEN?.trim() ?? '';
    if (problems.length > 0) return problems[0];
    if (!TOKENS.test(text)) return INVALID;
    if (QUOTED.test(text)) return IN_QUOTES;
    hashes = text.split(/\s+/).map(hash);
    return undefined;
  };
  let problem = read();
  if (problem !== undefined) throw new OperatorError(problem);
  return (authorization = '') => {
    const previous = problem;
    if (variables.KEYS_TOKEN_FILE !== undefined) problem = read();
    if (problem !== undefined && problem !== previous) warn(problem);
    const sent = hash(readBearerKey(authorization) ?? '');
    return hashes.some((each) => timingSafeEqual(each, sent));
  };
}

/** Hashes have one length, which is what a comparison in constant time needs. */
function hash(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
