import type { inferRouterOutputs } from '@trpc/server';
import { listDeprecated } from '../../packages/platform/src/contract/deprecation.js';
import { toHint } from '../../packages/platform/src/keys/format.js';
import type { AppRouter } from '../../src/router.js';
import type { Call } from './call.js';
import { type Caller, endKey, possibleVersions } from './callers.js';
import { OPERATIONS } from './operations.js';

type Key = inferRouterOutputs<AppRouter>['getKey'];

const DEPRECATED = listDeprecated([...OPERATIONS.values()]);

export function getKey(caller: Caller): Call {
  return {
    operation: 'getKey',
    input: {},
    check(output, sentAt) {
      const { name, hint, plan, bannedUntil, limits, usage } = output as Key;
      if (name !== caller.name || hint !== toHint(caller.key) || plan !== 'enterprise')
        return 'this is another key';
      const [minute, day] = limits;
      const isOwn = possibleVersions(caller, sentAt).some(({ perMinute }) => perMinute === minute?.limit);
      if (!isOwn || day?.limit !== caller.perDay) return 'the limits are those of another key';
      if (limits.some(({ limit, remaining }) => remaining > limit)) return 'more is left than was allowed';
      const isDenied = bannedUntil !== null || usage.some(({ denied }) => denied > 0);
      if (isDenied && !caller.isLimited) return 'nothing of this key was denied';
      const unknown = usage.find(
        ({ operation, deprecated }) => !OPERATIONS.has(operation) || deprecated !== DEPRECATED.has(operation),
      );
      return unknown && `the key cannot have used ${unknown.operation} like this`;
    },
  };
}

/** Ends a caller that nothing else needs. */
export function revokeKey(caller: Caller): Call {
  const noteRevoked = endKey(caller);
  return {
    operation: 'revokeKey',
    input: { hint: toHint(caller.key) },
    check(output) {
      noteRevoked();
      return output === undefined ? undefined : 'there should be no output';
    },
  };
}
