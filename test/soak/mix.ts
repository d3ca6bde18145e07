import type { Call } from './call.js';
import type { Caller, Callers } from './callers.js';
import { listCategories, nameCategory } from './category-calls.js';
import { getKey, revokeKey } from './key-calls.js';
import type { Ledger } from './ledger.js';
import { createOrder, getOrder, listOrders, updateOrder } from './order-calls.js';
import { createPet, getPet, listPets, updatePet } from './pet-calls.js';
import { pick, random, randomInteger } from './random.js';
import { repeat, type SoakRequest, toRequest } from './requests.js';

const MAX_CALLS = 5;
/** Repetitions are of one of the latest creates with a key, so that the first is often still running. */
const RECENT_COUNT = 4;
/** Of the requests of callers that may end: some come before the last one, and some after it. */
const REVOKING_SHARE = 0.3;

/** Returns a function that makes up requests of all kinds. `keyed` collects those with an Idempotency-Key. */
export function createMix(ledger: Ledger, callers: Callers, keyed: SoakRequest[]): () => SoakRequest {
  const several = (create: () => Call) => Array.from({ length: randomInteger(2, MAX_CALLS) }, create);
  const write = () => pick([createPet, updatePet, createOrder, updateOrder, nameCategory])(ledger);
  return () => {
    const isLimited = random() < 0.08;
    const caller = isLimited ? callers.limited : pick(callers.ample);
    const protocol = random() < 0.3 ? 'trpc' : 'rest';
    const read = () => pick(READS)(ledger, caller);
    const kind = random();
    if (kind < 0.4) return toRequest([read()], { caller, protocol });
    if (kind < 0.5) return toRequest(several(read), { caller, protocol: 'trpc' });
    if (kind < 0.51) return toRequest(...endableCall(callers, protocol));
    if (kind < 0.8) return toRequest([write()], { caller, protocol });
    // The limited caller is soon banned, and could not repeat what was lost.
    if (kind < 0.85 || isLimited) return toRequest(several(write), { caller, protocol: 'trpc' });
    const recent = keyed.slice(-RECENT_COUNT);
    if (kind < 0.92 && recent.length > 0) return repeat(pick(recent));
    const create = () => pick([createPet, createOrder])(ledger, { hasKey: true });
    const request =
      kind < 0.97
        ? toRequest([create()], { caller, protocol, hasKey: true })
        : toRequest(several(create), { caller, protocol: 'trpc', hasKey: true });
    keyed.push(request);
    return request;
  };
}

const READS: readonly ((ledger: Ledger, caller: Caller) => Call)[] = [
  ...[listPets, listPets, getPet, getPet, listOrders, getOrder, listCategories],
  (_ledger, caller) => getKey(caller),
];

function endableCall({ endable }: Callers, protocol: SoakRequest['protocol']): Parameters<typeof toRequest> {
  const caller = pick(endable);
  const call = random() < REVOKING_SHARE ? revokeKey(caller) : getKey(caller);
  return [[call], { caller, protocol }];
}
