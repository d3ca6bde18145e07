import { expect, test } from 'vitest';
import { ApiError } from '../../../src/errors/api-error.js';
import { toToolError } from '../../../src/protocols/mcp/advice.js';

test('only of a tool that changes something does an error say that it may have been done nevertheless', () => {
  for (const code of ['service_unavailable', 'internal_error'] as const) {
    const error = new ApiError(code);
    expect(toToolError(error, true).message).toContain('The change may have been made nevertheless');
    expect(toToolError(error, false).message).toBe(error.message);
  }
});
