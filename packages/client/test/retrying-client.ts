import { type ClientOptions, createClient } from '@animal-store/client';
import { expect } from 'vitest';
import { createFakeClock, type Intercept, interceptFetch } from '../../../test/support/intercepted-fetch.js';
import type { TestService } from '../../platform/test/support/test-service.js';

/** A client whose first requests are intercepted, the requests it sent, and how long it waited between them. */
export function connectWith(
  service: TestService,
  intercepts: Intercept[],
  options: Partial<ClientOptions> = {},
) {
  const { fetch, sent } = interceptFetch(...intercepts);
  const { clock, waits } = createFakeClock();
  const client = createClient({ baseUrl: service.url, apiKey: service.key, fetch, clock, ...options });
  return { client, sent, waits };
}

/** What a call that has to fail is rejected with. */
export function failureOf(call: Promise<unknown>): Promise<Error> {
  return call.then(
    () => expect.unreachable('the call succeeded'),
    (error: unknown) => error as Error,
  );
}
