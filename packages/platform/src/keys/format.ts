import { createHash, randomInt } from 'node:crypto';
import zlib from 'node:zlib';

/** How the keys of a deployment start: a key of one kind is invalid in a deployment of the other. */
export type KeyPrefix = `${string}live_` | `${string}test_`;

export const livePrefix = (ofStore: string): KeyPrefix => `${ofStore}live_`;
export const testPrefix = (ofStore: string): KeyPrefix => `${ofStore}test_`;

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** 30 characters of 62 carry 178 random bits. */
const RANDOM_LENGTH = 30;
/** 62^6 is the first power of 62 above 2^32. */
const CHECKSUM_LENGTH = 6;
const HINT_LENGTH = 12;
/** What follows the prefix */
const REST = `[0-9A-Za-z]{${RANDOM_LENGTH + CHECKSUM_LENGTH}}`;
const WHOLE_REST = new RegExp(`^${REST}$`);

/** RFC 6750, section 2.1; the case of the scheme does not matter (RFC 9110, section 11.1). */
const BEARER = /^bearer +(\S.*)$/i;

/** The token of an Authorization header, whether or not it can be a key. */
export function readBearerKey(authorization: string): string | undefined {
  return BEARER.exec(authorization)?.[1];
}

/** What a text has of keys of a store, of any deployment. @param prefix of the store, such as `as_` */
export function createKeySearch(prefix: string) {
  const start = new RegExp(`${prefix}(?:live|test)_`);
  const keys = new RegExp(`${start.source}${REST}`, 'g');
  return {
    /** Whether a text has the beginning of a key. */
    mayHaveKey: (text: string): boolean => start.test(text),
    /** For the log: replaces each key in a text by its hint. */
    redactKeys(text: string): string {
      // Hardly any line has a key, and searching for the prefix takes a tenth of the time.
      if (!start.test(text)) return text;
      return text.replaceAll(keys, (key) => (hasChecksum(key) ? `${toHint(key)}…` : key));
    },
  };
}

export type KeySearch = ReturnType<typeof createKeySearch>;

/** A new key: the prefix, random characters of base 62, and the base-62 CRC-32 of everything before it. */
export function generateKey(prefix: KeyPrefix): string {
  const random = Array.from({ length: RANDOM_LENGTH }, () => ALPHABET[randomInt(ALPHABET.length)]).join('');
  return prefix + random + checksum(prefix + random);
}

/** Whether the text can be a key of this deployment: rejects typing errors and garbage without a lookup. */
export function isWellFormedKey(text: string, prefix: KeyPrefix): boolean {
  return text.startsWith(prefix) && WHOLE_REST.test(text.slice(prefix.length)) && hasChecksum(text);
}

/** SHA-256 of the whole key, 32 bytes. Besides the hint, nothing else of a key is ever stored. */
export function hashKey(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}

/** The first characters of a key, by which its owner recognises it. */
export function toHint(key: string): string {
  return key.slice(0, HINT_LENGTH);
}

function hasChecksum(key: string): boolean {
  const end = key.length - CHECKSUM_LENGTH;
  return key.slice(end) === checksum(key.slice(0, end));
}

function checksum(text: string): string {
  let rest = zlib.crc32(text);
  let digits = '';
  for (let place = 0; place < CHECKSUM_LENGTH; place += 1) {
    digits = ALPHABET.charAt(rest % ALPHABET.length) + digits;
    rest = Math.floor(rest / ALPHABET.length);
  }
  return digits;
}
