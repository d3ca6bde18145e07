import { expect } from 'vitest';
import { errorOf } from './error-table.js';

/** Fails unless this is the body of an error with that code: exactly the members that the contract promises. */
export function expectErrorBody(body: unknown, code: string, message: unknown = expect.any(String)): void {
  expect(body).toEqual({ code, message, status: errorOf(code).status });
}

/** The same of a response under /mcp, whose body says how long to wait where the others have a header only. */
export function expectMcpErrorBody(body: unknown, code: string, message: unknown = expect.any(String)): void {
  const { status } = errorOf(code);
  const wait = status === 429 || status === 503 ? { retryAfterSeconds: expect.any(Number) } : {};
  expect(body).toEqual({ code, message, status, ...wait });
}
