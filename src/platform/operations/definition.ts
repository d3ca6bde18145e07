import { z } from 'zod';
import { SCOPES } from '#store/scopes.js';
import type { OperationMeta } from './builder.js';

/** The members of a procedure that tRPC's runner reads but its types do not declare. */
export interface ProcedureDefinition {
  readonly type: 'query' | 'mutation' | 'subscription';
  readonly meta?: OperationMeta;
  readonly inputs: readonly z.ZodType[];
  readonly output?: z.ZodType;
  readonly middlewares: readonly { readonly _type?: 'input' | 'output' }[];
  readonly resolver: (options: object) => Promise<unknown>;
}

/** A definition in which findDefinitionError found nothing. */
export type OperationDefinition = ProcedureDefinition &
  Required<Pick<ProcedureDefinition, 'meta' | 'output'>>;

type JsonSchema = z.core.JSONSchema.BaseSchema;

/** What keeps a procedure from being an operation, as the end of a sentence; undefined when nothing does. */
export function findDefinitionError({
  type,
  meta,
  inputs,
  output,
  middlewares,
}: ProcedureDefinition): string | undefined {
  if (meta === undefined) return 'it has no .meta().';
  if (output === undefined) return 'it has no .output(); without one, declare .output(z.void()).';
  if (inputs.length > 1) return 'it has more than one .input(); extend the schema instead.';
  const middlewareCount = middlewares.filter(({ _type }) => _type === undefined).length;
  if (middlewareCount > 1)
    return 'it has a .use(), which would be skipped: src/platform/operations/direct-call.ts calls procedures without their middleware.';
  if (meta.scope !== 'any' && !SCOPES.includes(meta.scope))
    return `its scope is none of ${SCOPES.join(', ')}, nor any.`;
  const { method } = meta.openapi;
  if (type !== (method === 'GET' ? 'query' : 'mutation')) return `a ${type} cannot be served as ${method}.`;
  if (meta.success !== undefined && output instanceof z.ZodVoid)
    return 'it has no output, which is a 204, and declares a 201.';
  if (meta.success !== undefined && meta.idempotent === undefined)
    return 'it responds with 201 and does not say whether it is idempotent: declare idempotent: true, or false if a repetition may add another.';
  if (meta.idempotent && output instanceof z.ZodVoid)
    return 'it is declared idempotent and has no output, which repetitions would get: return what it has created.';
  const schema = inputs[0] && z.toJSONSchema(inputs[0], { io: 'input', unrepresentable: 'any' });
  const unbounded = schema && findUnboundedNumber(schema, 'its input');
  if (unbounded !== undefined)
    return `${unbounded} accepts any number: use integer() or int64() of src/platform/operations/input.ts.`;
  return undefined;
}

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
