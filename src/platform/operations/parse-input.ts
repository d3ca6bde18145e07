import { TRPCError } from '@trpc/server';
import { z } from 'zod';

/**
 * The parsed input of an operation.
 *
 * @throws TRPCError BAD_REQUEST, whose cause is a ZodError
 */
export function parseInput(schema: z.ZodType, value: unknown): unknown {
  try {
    return schema.parse(value);
  } catch (cause) {
    throw new TRPCError({ code: 'BAD_REQUEST', cause });
  }
}

/**
 * Whether it is about an input. tRPC also wraps errors of a handler's own use of zod and of outputs, which no client may
 * see: only the code differs.
 */
export function isInputError(error: unknown): error is TRPCError & { readonly cause: z.ZodError } {
  return error instanceof TRPCError && error.code === 'BAD_REQUEST' && error.cause instanceof z.ZodError;
}
