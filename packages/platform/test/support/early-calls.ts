import { type Caller, createCaller, type TestResponse, until } from '@animal-store/platform/testing';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach } from 'vitest';
import { appRouter, resources } from '#operations-under-test';
import { ApiError } from '../../src/errors/api-error.js';
import type { NewKey } from '../../src/keys/store.js';
import { listOperations } from '../../src/operations/list-operations.js';
import { type EveryCall, listEveryCall } from './every-call.js';
import { createHeldLimiter, type HeldLimiter } from './held-limiter.js';
import { startService, type TestService } from './test-service.js';
import { watchStores } from './watched-stores.js';

// A service in which a test decides when a limit is decided, and what the stores answer with.

const NOW = Date.now();
/** The requests per minute of the keys that a test issues */
export const PER_MINUTE = 10;

type Answer = (call: () => Promise<unknown>) => Promise<unknown>;

const fail = (error: Error) => () => Promise.reject(error);

/** What queries can come to, by what a response would show of them. A page is one of a list that goes on. */
export const OUTCOMES: Readonly<Record<string, Answer>> = {
  'that has found a page and the next one': async (call) => {
    const found = await call();
    return Array.isArray(found) ? Array.from({ length: 101 }, (_, index) => ({ id: index + 1 })) : found;
  },
  'that the database could not serve': fail(Object.assign(new Error('canceled'), { code: '57014' })),
  'that has failed by a mistake': fail(new TypeError('a mistake')),
  'whose error has headers': fail(new ApiError('service_unavailable', { headers: { 'retry-after': '77' } })),
};

export const operations = listOperations(appRouter);

/** Whether the call may begin before its limit is decided. */
export const isEarly = ({ operation }: EveryCall) =>
  operations.some(({ name, mayBegin }) => name === operation && mayBegin);

/** What tests set, and what they see; as at first again before each test */
export interface Watched {
  answer: Answer;
  /** `begun` and `ended` for each call of a store, and what a test adds, in their order */
  events: string[];
  /** Of the log */
  lines: Readonly<Record<string, unknown>>[];
  usage: string[];
}

/** A service for all tests of a file, which calls this at its top. */
export function useEarlyCalls() {
  const watched = {} as Watched;
  const own = {} as { service: TestService; limiter: HeldLimiter; everyCall: readonly EveryCall[] };
  const reset = () => {
    Object.assign(watched, { answer: (call) => call(), events: [], lines: [], usage: [] } satisfies Watched);
    own.limiter.knowsCounts = true;
    own.limiter.release();
  };
  const watchedResources = watchStores(resources, async (call) => {
    watched.events.push('begun');
    return watched.answer(call).finally(() => watched.events.push('ended'));
  });
  const usage = {
    waiting: 0,
    dropped: 0,
    mostlyDenied: 0,
    count: (_id: string, calls: readonly string[], outcome = 'requests') =>
      void watched.usage.push(`${outcome} of ${calls}`),
  };
  beforeAll(async () => {
    own.limiter = await createHeldLimiter(() => NOW);
    reset();
    const log = pino({ level: 'info' }, { write: (line) => watched.lines.push(JSON.parse(line)) });
    const { limiter } = own;
    own.service = await startService({ resources: watchedResources, limiter, log, usage, now: () => NOW });
    const { key, apiKey } = await own.service.keys.create({ name: 'endable', plan: 'pro', expiresAt: null });
    own.everyCall = await listEveryCall(createCaller(own.service), { key, hint: apiKey.hint });
  });
  beforeEach(reset);
  afterAll(() => own.service.close());

  const callWith = (key: string): Caller => createCaller({ url: own.service.url, key });
  return {
    watched,
    own,
    reset,
    watchedResources,
    callWith,
    /** Issues a key of which so many requests have been counted. The service knows it already, so no lookup delays a request. */
    async issue(used = 0, scopes?: NewKey['scopes']) {
      const limits = { perMinute: PER_MINUTE, perDay: 1_000 };
      const named = { name: 'limited', plan: 'enterprise', expiresAt: null, scopes } as const;
      const { key, apiKey } = await own.service.keys.create({ ...named, ...limits });
      reset();
      await own.limiter.consume({ kind: 'key', id: apiKey.id, limits }, used);
      await callWith(key)('/v1/nope');
      await until(() => watched.lines.some(({ keyId }) => keyId === apiKey.id) || undefined);
      reset();
      return { key, apiKey };
    },
    /** Sends one of the calls with a key, and resolves with the whole response. */
    async send(each: EveryCall, key: string): Promise<TestResponse> {
      const responses: TestResponse[] = [];
      await each.send(async (path, init) => {
        const response = await callWith(key)(path, init);
        responses.push(response);
        return response;
      });
      return responses[0] as TestResponse;
    },
    /** Resolves when a call of a store has ended. */
    untilEnded: () => until(() => watched.events.includes('ended') || undefined),
  };
}
