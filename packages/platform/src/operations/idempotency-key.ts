import { ApiError } from '../errors/api-error.js';
import type { IdempotencyKey } from '../tables/idempotency.js';
import type { RequestContext } from './builder.js';

/** 1 to 255 visible ASCII characters. */
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
    'ctx.once is for operations that take an Idempotency-Key: declare idempotent: true in the .meta() of this one',
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
      throw new TypeError(`${call.path} calls ctx.once twice, and has one key: create all within one`);
    wasCalled = true;
    const { output, isReplay } = await create(key);
    idempotency?.setReplayed(isReplay);
    return output;
  };
  return {
    // A copy beside the original and not an object on top of it: each new prototype costs V8 a hidden class of its own.
    ctx: Object.assign(Object.create(Object.getPrototypeOf(call.ctx)), call.ctx, { once }) as RequestContext,
    /** @throws TypeError */
    expectOnce() {
      if (wasCalled) return;
      throw new TypeError(
        `${call.path} is declared idempotent, and a repetition would add another: let it create within ctx.once, as in ` +
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
      message: 'Idempotency-Key must have 1 to 255 visible ASCII characters.',
    });
  }
  return { apiKeyId: apiKey.id, value, operation: path, batchIndex, bodyHash };
}
