import type { FastifyReply } from 'fastify';
import { ApiError } from '../errors/api-error.js';

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Only literals with a fraction or an exponent can round to a different integer. */
const HAS_FRACTION = /\d[.eE]/;
const STRING_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const NUMBER = /^-?(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;

/**
 * Decodes a JSON body, which is UTF-8 (RFC 8259).
 *
 * @throws ApiError invalid_request when the bytes are not UTF-8
 */
export function decodeBody(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new ApiError('invalid_request', { message: 'The body is not valid UTF-8.' });
  }
}

/**
 * Parses JSON without rounding fractions to integers: see keepFractions.
 *
 * @throws ApiError invalid_request when the text is not JSON
 */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(keepFractions(text));
  } catch {
    throw new ApiError('invalid_request', { message: 'The body is not valid JSON.' });
  }
}

/**
 * JSON.parse turns numbers into doubles, so a fraction too fine for a double (9007199254740991.4, 1.000000000000000001)
 * becomes an integer that the client never sent. Replaces such literals by 0.5, which integer schemas also reject.
 *
 * @throws SyntaxError when the text is not JSON
 */
export function keepFractions(text: string): string {
  if (!HAS_FRACTION.test(text)) return text;
  JSON.parse(text);
  return text.replace(STRING_OR_NUMBER, (token) => (losesFraction(token) ? '0.5' : token));
}

/**
 * Sends text that is already JSON. With a serializer, Fastify adds no charset, which application/json does not define.
 * A string is sent in one write with the head of the response; bytes would need a second write.
 */
export function sendJson(reply: FastifyReply, text: string): FastifyReply {
  return reply.type('application/json').serializer(identity).send(text);
}

function identity(text: string): string {
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
