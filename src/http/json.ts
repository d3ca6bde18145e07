import type { FastifyReply } from 'fastify';
import { ApiError } from '../errors.js';

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** A literal with a fraction or an exponent: the only ones that can round to an integer that they are not. */
const HAS_FRACTION = /\d[.eE]/;
const STRING_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const NUMBER = /^-?(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;

/**
 * The text of a JSON body (RFC 8259: UTF-8).
 *
 * @throws ApiError invalid_request when the bytes are not UTF-8
 */
export function decodeBody(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new ApiError('invalid_request', 'The body is not valid UTF-8.');
  }
}

/**
 * Parses JSON as strictly as an integer needs it; see keepFractions.
 *
 * @throws ApiError invalid_request when the text is not JSON
 */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(keepFractions(text));
  } catch {
    throw new ApiError('invalid_request', 'The body is not valid JSON.');
  }
}

/**
 * Numbers of JSON become doubles, and a fraction too fine for one (9007199254740991.4, 1.00000000000000000001) would
 * turn into an integer that was never sent. Such a literal is replaced by 0.5, which no integer accepts either.
 *
 * @throws SyntaxError when the text is not JSON
 */
export function keepFractions(text: string): string {
  if (!HAS_FRACTION.test(text)) return text;
  JSON.parse(text);
  return text.replace(STRING_OR_NUMBER, (token) => (losesFraction(token) ? '0.5' : token));
}

/**
 * Sends text that is JSON already. Through a serializer that leaves it as it is: else Fastify would add a charset, a
 * parameter that application/json does not have. As text it leaves in one write with its head, which bytes do not.
 */
export function sendJson(reply: FastifyReply, text: string): FastifyReply {
  return reply.type('application/json').serializer(asItIs).send(text);
}

function asItIs(text: string): string {
  return text;
}

function losesFraction(token: string): boolean {
  const [, whole = '', fraction = '', exponent = '0'] = NUMBER.exec(token) ?? [];
  if (whole === '' || !Number.isInteger(Number(token))) return false;
  const digits = whole + fraction;
  let end = digits.length;
  while (digits[end - 1] === '0') end -= 1;
  const trailingZeros = digits.length - end;
  return end > 0 && Number(exponent) - fraction.length + trailingZeros < 0;
}
