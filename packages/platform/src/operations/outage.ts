import { ApiError } from '../errors/api-error.js';
import { isOutageMessage, OUTAGE_MESSAGES } from '../errors/outage-messages.js';
import type { OperationMeta } from './builder.js';
import { toApiError } from './error-mapping.js';

/** The message of a 503 of an operation. */
export function outageMessage({ openapi, idempotent }: OperationMeta): string {
  const { method } = openapi;
  if (method === 'GET') return OUTAGE_MESSAGES.read;
  if (idempotent) return OUTAGE_MESSAGES.idempotentCreate;
  return method === 'POST' ? OUTAGE_MESSAGES.otherPost : OUTAGE_MESSAGES.change;
}

/** An error of an operation: a 503 with that message, any other as it is, and so is a 503 to which a store gave its own words. */
export function withOutageMessage(error: unknown, message: string): unknown {
  const apiError = toApiError(error);
  if (apiError.code !== 'service_unavailable' || !isOutageMessage(apiError.message)) return error;
  const { headers, cause } = apiError;
  return new ApiError('service_unavailable', { message, headers, cause });
}
