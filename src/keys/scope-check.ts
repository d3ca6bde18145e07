import type { Scope } from '../contract/scopes.js';
import { ApiError } from '../errors/api-error.js';
import type { ApiKey } from './store.js';

/** Why a key may not call an operation that needs this scope (RFC 6750, section 3.1), or undefined if it may. */
export function findScopeError({ scopes }: Pick<ApiKey, 'scopes'>, scope: Scope): ApiError | undefined {
  if (scopes.includes(scope)) return undefined;
  return new ApiError('insufficient_scope', {
    message: `The API key lacks the scope ${scope}.`,
    headers: { 'www-authenticate': `Bearer error="insufficient_scope", scope="${scope}"` },
    scope,
  });
}
