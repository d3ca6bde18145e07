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
    throw toInputError(cause, schema, value);
  }
}

/** @param cause what the schema has thrown */
export function toInputError(cause: unknown, schema: z.ZodType, value: unknown): TRPCError {
  const error = cause instanceof z.ZodError ? explainNulls(cause, schema, value) : cause;
  return new TRPCError({ code: 'BAD_REQUEST', cause: error });
}

/**
 * Whether it is about an input. tRPC also wraps errors of a handler's own use of zod and of outputs, which no client may
 * see: only the code differs.
 */
export function isInputError(error: unknown): error is TRPCError & { readonly cause: z.ZodError } {
  return error instanceof TRPCError && error.code === 'BAD_REQUEST' && error.cause instanceof z.ZodError;
}

/** Callers often send null for a member that is left out, so the error says that null is not allowed. */
function explainNulls(error: z.ZodError, schema: z.ZodType, value: unknown): z.ZodError {
  const issues = error.issues.map((issue) => {
    const isNull = readValue(value, issue.path) === null;
    if (!isNull || issue.path.length === 0 || !mayBeLeftOut(findMember(schema, issue.path))) return issue;
    return { ...issue, message: `${issue.message}, or left out; null is not allowed` };
  });
  return new z.ZodRealError(issues);
}

function readValue(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (node, key) => (node as Record<PropertyKey, unknown> | undefined)?.[key],
    value,
  );
}

function findMember(schema: z.ZodType, path: readonly PropertyKey[]): z.ZodType | undefined {
  return path.reduce<z.ZodType | undefined>((node, key) => {
    const container = node && unwrap(node);
    if (container instanceof z.ZodArray) return container.element as z.ZodType;
    return container instanceof z.ZodObject ? (container.shape[String(key)] as z.ZodType) : undefined;
  }, schema);
}

/** What is inside of `.optional()`, `.default()`, `.nullable()` and the like */
function unwrap(schema: z.ZodType): z.ZodType {
  return 'unwrap' in schema && typeof schema.unwrap === 'function' && !(schema instanceof z.ZodArray)
    ? unwrap(schema.unwrap())
    : schema;
}

/** Zod names the way in which a member may be left out: as optional, or with a default. */
function mayBeLeftOut(schema: z.ZodType | undefined): boolean {
  return schema?._zod.optin !== undefined;
}
