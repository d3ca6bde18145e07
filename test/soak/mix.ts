import type { Caller } from './callers.js';
import { type Call, createPet, getPet, listPets } from './calls.js';
import type { Ledger } from './ledger.js';
import { pick, random, randomInteger } from './random.js';

/** One HTTP request: a call over REST, or one or several over tRPC. */
export interface SoakRequest {
  /** Sent as X-Request-Id; unique */
  readonly id: string;
  readonly caller: Caller;
  readonly protocol: 'rest' | 'trpc';
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body: string | undefined;
  readonly calls: readonly Call[];
  readonly isBatch: boolean;
  readonly key: SentKey | undefined;
}

/** An Idempotency-Key that several requests may carry. */
interface SentKey {
  readonly value: string;
  /** How many responses were not marked as a replay */
  firstResponses: number;
}

const MAX_CALLS = 5;
/** Repetitions are of one of the latest creates with a key, so that the first is often still running. */
const RECENT_COUNT = 4;

let requestCount = 0;
const nextId = () => {
  requestCount += 1;
  return `soak-${requestCount}`;
};

export interface RequestOptions {
  readonly caller: Caller;
  /** tRPC makes a batch of several calls, and of one too if `isBatch`. */
  readonly protocol: 'rest' | 'trpc';
  readonly isBatch?: boolean;
  readonly hasKey?: boolean;
}

export function toRequest(
  calls: readonly Call[],
  { caller, protocol, isBatch = calls.length > 1, hasKey = false }: RequestOptions,
): SoakRequest {
  const id = nextId();
  const key = hasKey ? { value: `key-${id}`, firstResponses: 0 } : undefined;
  const target = protocol === 'rest' ? restTarget(calls[0] as Call) : rpcTarget(calls, isBatch);
  return { id, caller, protocol, ...target, calls, isBatch, key };
}

/** Sends the same bytes again, under another X-Request-Id. */
export function repeat(request: SoakRequest): SoakRequest {
  return { ...request, id: nextId() };
}

function restTarget({ operation, input }: Call): Pick<SoakRequest, 'method' | 'path' | 'body'> {
  if (operation === 'createPet') return { method: 'POST', path: '/v1/pets', body: JSON.stringify(input) };
  if (operation === 'getPet') return { method: 'GET', path: `/v1/pets/${input.petId}`, body: undefined };
  const query = new URLSearchParams(Object.entries(input).map(([name, value]) => [name, String(value)]));
  return { method: 'GET', path: `/v1/pets?${query}`, body: undefined };
}

function rpcTarget(calls: readonly Call[], isBatch: boolean): Pick<SoakRequest, 'method' | 'path' | 'body'> {
  const names = calls.map(({ operation }) => operation).join();
  const inputs = calls.map(({ input }) => input);
  const input = JSON.stringify(isBatch ? { ...inputs } : inputs[0]);
  const path = `/trpc/${names}${isBatch ? '?batch=1' : ''}`;
  if (calls[0]?.operation === 'createPet') return { method: 'POST', path, body: input };
  const query = `${isBatch ? '&' : '?'}input=${encodeURIComponent(input)}`;
  return { method: 'GET', path: path + query, body: undefined };
}

/** Returns a function that makes up requests of all kinds. `keyed` collects those with an Idempotency-Key. */
export function createMix(
  ledger: Ledger,
  { ample, limited }: { readonly ample: readonly Caller[]; readonly limited: Caller },
  keyed: SoakRequest[],
): () => SoakRequest {
  const several = (create: () => Call) => Array.from({ length: randomInteger(2, MAX_CALLS) }, create);
  const read = () => pick([listPets, getPet])(ledger);
  return () => {
    const isLimited = random() < 0.08;
    const caller = isLimited ? limited : pick(ample);
    const protocol = random() < 0.3 ? 'trpc' : 'rest';
    const kind = random();
    if (kind < 0.5) return toRequest([read()], { caller, protocol });
    if (kind < 0.6) return toRequest(several(read), { caller, protocol: 'trpc' });
    if (kind < 0.8) return toRequest([createPet(ledger)], { caller, protocol });
    // The limited caller is soon banned, and could not repeat what was lost.
    if (kind < 0.85 || isLimited)
      return toRequest(
        several(() => createPet(ledger)),
        { caller, protocol: 'trpc' },
      );
    const recent = keyed.slice(-RECENT_COUNT);
    if (kind < 0.92 && recent.length > 0) return repeat(pick(recent));
    const create = () => createPet(ledger, { hasKey: true });
    const request =
      kind < 0.97
        ? toRequest([create()], { caller, protocol, hasKey: true })
        : toRequest(several(create), { caller, protocol: 'trpc', hasKey: true });
    keyed.push(request);
    return request;
  };
}
