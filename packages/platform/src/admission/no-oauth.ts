import type { FastifyInstance } from 'fastify';
import { ApiError } from '../errors/api-error.js';
import { type CorsOptions, registerCors } from './cors.js';

/** Where an assistant looks for OAuth once its key was refused (RFC 8414, 9728, 7591). */
const OAUTH_PATHS = ['/register', '/authorize', '/token', '/.well-known/oauth-*', '/.well-known/openid-*'];

const NO_OAUTH = new ApiError('not_found', {
  message:
    'There is no OAuth here, and nothing to register or log in to. Send a valid API key as: Authorization: Bearer <API_KEY>',
});

/** Says so where assistants look for OAuth, because they show what they find there. Assistants in a browser may read it, too. */
export async function registerNoOAuth(
  scope: FastifyInstance,
  options: Omit<CorsOptions, 'corsMethods'>,
): Promise<void> {
  await registerCors(scope, { ...options, corsMethods: ['GET', 'POST'] });
  for (const path of OAUTH_PATHS) scope.all(path, () => Promise.reject(NO_OAUTH));
}
