import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { loseResponse, neverRespond } from '../../../test/support/intercepted-fetch.js';
import { create, list, newItem, TEXT } from '../../../test/support/operations-under-test.js';
import { useService } from '../../platform/test/support/test-service.js';
import { connectWith, failureOf } from './retrying-client.js';

const { service } = useService();

/** As React Native has it: without `reason` and `throwIfAborted` */
class BareSignal extends EventTarget {
  aborted = false;
}
class BareController {
  readonly signal = new BareSignal();
  abort(): void {
    this.signal.aborted = true;
    this.signal.dispatchEvent(new Event('abort'));
  }
}

// What React Native 0.76 has not, or in a simpler form.
beforeEach(() => {
  for (const name of ['crypto', 'DOMException', 'location']) vi.stubGlobal(name, undefined);
  vi.stubGlobal('AbortController', BareController);
  vi.stubGlobal('Request', undefined);
});
afterEach(() => vi.unstubAllGlobals());

/** The signals of React Native and the `fetch` of Node.js do not go together. */
const send = (_real: () => Promise<Response>, { signal: _, ...init }: RequestInit, url: string) =>
  fetch(url, init);

test('in React Native, creates have a key, and are repeated with it', async () => {
  const bare: typeof fetch = (url, init) => send(() => fetch(url, init), init ?? {}, String(url));
  const keys: unknown[] = [];
  let attempts = 0;
  const losesFirst: typeof fetch = async (url, init) => {
    keys.push(new Headers(init?.headers).get('idempotency-key'));
    return attempts++ === 0 ? loseResponse(() => bare(url, init), init ?? {}) : bare(url, init);
  };
  const { client } = connectWith(service, [], { fetch: losesFirst });
  const item = await client[create.name].mutate(newItem('Miso'));
  expect(item[TEXT]).toBe('Miso');
  expect(keys[0]).toMatch(/^[\da-f]{32}$/);
  expect(keys).toEqual([keys[0], keys[0]]);
});

test('in React Native, a call ends with its signal, or after its time, and the cause says which', async () => {
  const fetch: typeof globalThis.fetch = (_url, init) =>
    Promise.resolve(neverRespond(() => fetch(''), init ?? {}));
  const { client } = connectWith(service, [], { fetch, retry: { totalSeconds: 0.05 } });
  expect((await failureOf(client[list.name].query())).cause).toMatchObject({ name: 'TimeoutError' });
  const patient = connectWith(service, [], { fetch }).client;
  const controller = new AbortController();
  const { signal } = controller;
  const failure = failureOf(patient[list.name].query({}, { signal }));
  controller.abort();
  expect((await failure).cause).toMatchObject({ name: 'AbortError' });
  expect((await failureOf(patient[list.name].query({}, { signal }))).cause).toMatchObject({
    name: 'AbortError',
  });
});
