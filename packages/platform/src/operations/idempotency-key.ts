import { ApiError } from '../errors/api-error.js';
import type { IdempotencyKey } from '../tables/idempotency.js';
import type { RequestContext } from './builder.js';

/** The form of a key, in words */
export const IDEMPOTENCY_KEY_FORM = '1 to 255 visible ASCII characters';
export const IDEMPOTENCY_KEY = /^[!-~]{1,255}$/;

interface Call {
  readonly ctx: RequestContext;
  /** The name of the operation. */
  readonly path: string;
  readonly batchIndex: number;
}

/** `ctx.once` of operations that are not declared idempotent. @throws TypeError */
export const rejectOnce: RequestContext['once'] = () => {
  throw new TypeError(
    'ctx.once is for operations that take an Idempotency-Key: declare idempotent: true in the .meta() of this operation',
  );
};

/**
 * The context of a call of an operation that is declared idempotent, and a check that the operation did what it declares.
 *
 * @throws ApiError invalid_request when the Idempotency-Key is malformed
 */
export function withOnce(call: Call) {
  const { idempotency } = call.ctx;
  const key = readIdempotencyKey(call);
  let wasCalled = false;
  const once: RequestContext['once'] = async (create) => {
    if (wasCalled)
      throw new TypeError(
        `${call.path} calls ctx.once twice, but has one key: create everything within one call`,
      );
    wasCalled = true;
    const { output, isReplay } = await create(key);
    idempotency?.setReplayed(isReplay);
    return output;
  };
  return {
    // A copy of the context, not an object that inherits from it, because each new prototype costs V8 a hidden class.
    ctx: Object.assign(Object.create(Object.getPrototypeOf(call.ctx)), call.ctx, { once }) as RequestContext,
    /** @throws TypeError */
    expectOnce() {
      if (wasCalled) return;
      throw new TypeError(
        `${call.path} is declared idempotent, but a repetition would add another: create within ctx.once, as in ` +
          'ctx.once((key) => ctx.store.create(input, key)), or declare idempotent: false',
      );
    },
  };
}

function readIdempotencyKey({ ctx, path, batchIndex }: Call): IdempotencyKey | undefined {
  const { apiKey, idempotency } = ctx;
  if (idempotency === undefined) return undefined;
  const { value, bodyHash } = idempotency;
  if (!IDEMPOTENCY_KEY.test(value)) {
    throw new ApiError('invalid_request', {
      message: `Idempotency-Key must have ${IDEMPOTENCY_KEY_FORM}.`,
    });
  }
  return { apiKeyId: apiKey.id, value, operation: path, batchIndex, bodyHash };
}
