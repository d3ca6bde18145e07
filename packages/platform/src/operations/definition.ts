import { z } from 'zod';
import type { OperationMeta } from './builder.js';

/** The members of a procedure that tRPC's runner reads but its types do not declare. */
export interface ProcedureDefinition {
  readonly type: 'query' | 'mutation' | 'subscription';
  readonly meta?: OperationMeta;
  readonly inputs: readonly z.ZodType[];
  readonly output?: z.ZodType;
  readonly middlewares: readonly { readonly _type?: 'input' | 'output' | 'errors' }[];
  readonly resolver: (options: object) => Promise<unknown>;
}

/** A definition in which findDefinitionError found nothing. */
export type OperationDefinition = ProcedureDefinition &
  Required<Pick<ProcedureDefinition, 'meta' | 'output'>>;

type JsonSchema = z.core.JSONSchema.BaseSchema;

/** Whether a procedure has a `.use()`. The last of its middlewares without a type is its handler. */
export function hasMiddleware({ middlewares }: ProcedureDefinition): boolean {
  return middlewares.filter(({ _type }) => _type === undefined).length > 1;
}

/** Why a procedure cannot be an operation, as the end of a sentence; undefined if it can. */
export function findDefinitionError(definition: Partial<ProcedureDefinition>): string | undefined {
  const { type, meta, inputs = [], output, middlewares = [] } = definition;
  if (type === undefined)
    return 'it is not a procedure: put the procedures of a router of your own into `procedures` one by one, as in { listBooks }.';
  if (type === 'subscription')
    return 'it is a subscription: let clients repeat a query from the last id that they have seen.';
  if (meta === undefined) return 'it has no .meta(): see OperationMeta of @animal-store/platform/operations.';
  if (output === undefined) return 'it has no .output(); without one, declare .output(z.void()).';
  if (inputs.length > 1)
    return 'it has more than one .input(): extend the schema instead, so that one error can name every invalid member.';
  if (middlewares.some(({ _type }) => _type === 'errors'))
    return 'it has .errors(), and errors look the same over all protocols: throw an ApiError in its handler or a .use().';
  return findMetaError(meta, type, output) ?? findInputError(inputs[0]) ?? findOutputError(output);
}

function findMetaError(
  { openapi: { method }, success, idempotent }: OperationMeta,
  type: ProcedureDefinition['type'],
  output: z.ZodType,
): string | undefined {
  if (type !== (method === 'GET' ? 'query' : 'mutation')) return `a ${type} cannot be served as ${method}.`;
  if (success !== undefined && output instanceof z.ZodVoid)
    return 'it has no output, which means a 204, but declares a 201.';
  if (success !== undefined && idempotent === undefined)
    return 'it responds with 201 but does not say whether it is idempotent: declare idempotent: true, or false if a repetition may add another.';
  if (idempotent && output instanceof z.ZodVoid)
    return 'it is declared idempotent but has no output for repetitions to get: return what it has created.';
  return undefined;
}

function findInputError(input: z.ZodType | undefined): string | undefined {
  if (input === undefined) return undefined;
  const schema = toJsonSchema(input, 'input');
  if (typeof schema === 'string') return `its input ${schema}.`;
  const root = schema.$defs?.[schema.$ref?.split('/').at(-1) ?? ''] ?? schema;
  if (root.anyOf !== undefined || root.oneOf !== undefined)
    return 'its input is a union: declare an operation for each of its members, or one object with a .refine().';
  if (root.type !== 'object') return 'its input is not an object: make it a member of z.object({ … }).';
  const unbounded = findUnboundedNumber(schema, 'its input');
  return (
    unbounded &&
    `${unbounded} accepts any number: use integer() or int64() of @animal-store/platform/operations.`
  );
}

function findOutputError(output: z.ZodType): string | undefined {
  const schema = output instanceof z.ZodVoid ? undefined : toJsonSchema(output, 'output');
  return typeof schema === 'string' ? `its output ${schema}.` : undefined;
}

/** A zod schema as JSON Schema, or why it has none, as the end of a sentence. */
function toJsonSchema(schema: z.ZodType, io: 'input' | 'output'): JsonSchema | string {
  let what: string | undefined;
  const found = z.toJSONSchema(schema, {
    io,
    unrepresentable: 'any',
    override({ zodSchema }) {
      const { type } = (zodSchema as unknown as z.ZodType).def;
      if (NOT_JSON.has(type) || (io === 'output' && type === 'transform')) what ??= type;
    },
  });
  if (what === undefined) return found;
  if (what === 'transform') return 'has a .transform(), which would be skipped: return what is sent';
  const isFile = what === 'file' || what === 'custom';
  return isFile
    ? `has a member of the type ${what}: bodies are JSON, so let clients send a file to a storage and its address here`
    : `has a member of the type ${what}, which JSON does not have, and there is no transformer: use instant(), date(), decimal() or text() of @animal-store/platform/operations`;
}

/** Types that JSON does not have, by zod's names. */
const NOT_JSON: ReadonlySet<string> = new Set([
  'bigint',
  'custom',
  'date',
  'file',
  'map',
  'nan',
  'set',
  'symbol',
]);

/** The member that accepts a number of any size, which could reach an integer column and become a 500. */
function findUnboundedNumber(schema: JsonSchema, name: string): string | undefined {
  if (isUnboundedNumber(schema)) return name;
  const { properties, $defs, items, prefixItems, additionalProperties, anyOf, oneOf, allOf } = schema;
  const named = Object.entries({ ...$defs, ...properties });
  const unnamed = [items, prefixItems, additionalProperties, anyOf, oneOf, allOf].flat();
  for (const [childName, child] of [...named, ...unnamed.map((child) => [name, child] as const)]) {
    const found = typeof child === 'object' ? findUnboundedNumber(child, childName) : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}

function isUnboundedNumber(schema: JsonSchema): boolean {
  const { type, minimum, exclusiveMinimum, maximum, exclusiveMaximum } = schema;
  // A nullable number has two types.
  const isNumber = [type].flat().some((each) => each === 'number' || each === 'integer');
  if (!isNumber || 'const' in schema || 'enum' in schema) return false;
  return (minimum ?? exclusiveMinimum) === undefined || (maximum ?? exclusiveMaximum) === undefined;
}
