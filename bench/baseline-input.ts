import type { IncomingMessage } from 'node:http';

/*
 * How bench/baseline.ts reads bodies, ids and query parameters, and the errors that it and bench/hono.ts respond with.
 */

export const BODY_LIMIT_BYTES = 64 * 1024;

export class ApiError extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export function isName(name: string): boolean {
  if (name.length === 0 || (name.length > 200 && [...name].length > 200)) return false;
  return !/\p{Surrogate}/u.test(name) && !name.includes('\0') && !/^\p{White_Space}*$/u.test(name);
}

export async function readBody(request: IncomingMessage): Promise<string> {
  if (!/^application\/json *(;|$)/i.test(request.headers['content-type'] ?? '')) {
    throw new ApiError(415, 'unsupported_media_type', 'The body must be application/json.');
  }
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > BODY_LIMIT_BYTES) throw new ApiError(413, 'payload_too_large', 'The body is over 64 KiB.');
  }
  return Buffer.concat(chunks).toString();
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ApiError(400, 'invalid_request', 'The body is not valid JSON.');
  }
}

/** Returns undefined for what is the id of nothing. */
export function readId(text: string): number | undefined {
  const id = /^-?\d+$/.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(id) ? id : undefined;
}

export function readInteger(
  query: URLSearchParams,
  name: string,
  min: number,
  max: number,
): number | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  const value = Number(text);
  if (/^-?\d+$/.test(text) && value >= min && value <= max) return value;
  throw new ApiError(400, 'invalid_request', `${name} must be an integer from ${min} to ${max}.`);
}
