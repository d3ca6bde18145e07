import { expect } from 'vitest';
import type { ErrorCode } from '../../src/errors/api-error.js';
import { errorTable } from '../../src/errors/error-table.js';

/** Fails unless this is the body of an error with that code: exactly the members that the contract promises. */
export function expectErrorBody(body: unknown, code: ErrorCode, message: unknown = expect.any(String)): void {
  expect(body).toEqual({ code, message, status: errorTable[code].status });
}

/** The same of a response under /mcp, whose body says how long to wait where the others have a header only. */
export function expectMcpErrorBody(
  body: unknown,
  code: ErrorCode,
  message: unknown = expect.any(String),
): void {
  const { status } = errorTable[code];
  const wait = status === 429 || status === 503 ? { retryAfterSeconds: expect.any(Number) } : {};
  expect(body).toEqual({ code, message, status, ...wait });
}
