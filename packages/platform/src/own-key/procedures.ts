import { z } from 'zod';
import type { Database } from '../connections/client.js';
import type { Definition, PlanOf, PlatformErrorCode, ScopeOf, WindowOf } from '../definition/definition.js';
import { ApiError } from '../errors/api-error.js';
import { createProcedure } from '../operations/builder.js';
import type { Resource } from '../operations/resource.js';
import { createKeySchemas } from './schema.js';
import { type CallerKeyStore, createCallerKeyStore } from './store.js';

const GET_KEY =
  'What the service knows of the key that the request is made with: its plan, its scopes, what is left of its limits, and ' +
  'what it has called on which day. The key itself is never returned.';

const OTHER_HINT = 'must be the hint of the key that is sent: its first characters, as getKey shows them';

/** getKey and revokeKey, with the plans, scopes and windows of a store. */
export function createOwnKey<const Of extends Definition>(definition: Of) {
  const { key, ownHint } = createKeySchemas(definition);
  const procedure = createProcedure<
    { readonly key: CallerKeyStore },
    ScopeOf<Of>,
    PlatformErrorCode,
    PlanOf<Of>,
    WindowOf<Of>
  >();
  const getKey = procedure
    .meta({
      openapi: {
        method: 'GET',
        path: '/key',
        summary: 'Get your API key',
        description:
          `${GET_KEY} The call costs the key nothing, and works while the key is over its limit or banned: such calls have a ` +
          'limit of their own.',
        successDescription: 'The key',
      },
      stability: 'beta',
      scope: 'any',
      freeForKey: 'windowed',
      // Over MCP the call is free only for clients that name the tool in a header.
      tool: { description: GET_KEY },
    })
    .output(key)
    .query(async ({ ctx: { apiKey, limits, limitsPer, bannedUntil, deprecated, key: store, now } }) => {
      const { name, hint, plan, scopes, createdAt, expiresAt } = apiKey;
      const usage = await store.readUsage(apiKey.id, now());
      return {
        name,
        hint,
        plan,
        scopes: definition.scopes.filter((scope) => scopes.includes(scope)),
        createdAt: createdAt.toISOString(),
        expiresAt: expiresAt?.toISOString() ?? null,
        bannedUntil: bannedUntil === undefined ? null : new Date(bannedUntil).toISOString(),
        limits: limits.map(({ name: window, limit, remaining, resetAtMs }) => ({
          window,
          limit,
          remaining,
          resetsAt: new Date(Math.ceil(resetAtMs / 1000) * 1000).toISOString(),
          shared: limitsPer === 'owner' && apiKey.owner !== null,
        })),
        usage: usage.map((each) => ({ ...each, deprecated: deprecated.has(each.operation) })),
      };
    });

  const revokeKey = procedure
    .meta({
      openapi: {
        method: 'DELETE',
        path: '/key',
        summary: 'Revoke your API key',
        description:
          'Revokes the key that the request is made with, for good. The `hint` has to be its own, so that neither a crawler nor a ' +
          'stray click revokes a key. The process that responds rejects the key at once, all others within 2 seconds; ' +
          'repeating the call is a 401. During the overlap of a rotation, both the old and the new key are revoked, whichever is sent. ' +
          'The call costs the key nothing, has no limit, and works while the key is over its limit or banned.',
        successDescription: 'The key is revoked',
      },
      stability: 'beta',
      scope: 'any',
      freeForKey: 'always',
      tool: false,
    })
    .input(ownHint)
    .output(z.void())
    .mutation(async ({ ctx, input: { hint } }) => {
      if (hint !== ctx.apiKey.hint)
        throw new ApiError('invalid_request', {
          message: `hint ${OTHER_HINT}.`,
          fields: { hint: OTHER_HINT },
        });
      await ctx.revokeKey(ctx.apiKey.id);
    });

  return {
    name: 'key',
    description: 'Your API key',
    createStore: (database: Database): CallerKeyStore => createCallerKeyStore(database),
    procedures: { getKey, revokeKey },
  } satisfies Resource<CallerKeyStore>;
}
