import type { AnyTRPCRouter } from '@trpc/server';
import { z } from 'zod';
import { METHODS_WITH_BODY } from '../contract/protocol.js';
import type { OperationMeta } from './builder.js';
import { hasMiddleware, type OperationDefinition } from './definition.js';

/** One operation as the protocols serve it, read once from its procedure. */
export interface Operation extends Omit<OperationMeta, 'openapi'> {
  readonly name: string;
  readonly method: OperationMeta['openapi']['method'];
  /** The path in the OpenAPI document, relative to the version: /pets/{petId} */
  readonly path: string;
  readonly summary: string;
  readonly description: string;
  /** Undefined if the operation takes none. */
  readonly input: z.ZodType | undefined;
  /** Undefined if the operation has none. */
  readonly output: z.ZodType | undefined;
  /** The members of the input that come from the path and the query. */
  readonly parameters: readonly OperationParameter[];
  /** Whether the other members of the input come from a body. */
  readonly takesBody: boolean;
  /**
   * Whether a call may begin before its request is admitted. A query changes nothing; but one that is free says what is left of
   * a limit, and a `.use()` may do anything.
   */
  readonly mayBegin: boolean;
}

export interface OperationParameter {
  readonly name: string;
  readonly in: 'path' | 'query';
  /** A JSON Schema type; other types are strings, as an enum is. */
  readonly type: 'integer' | 'number' | 'boolean' | 'string';
  /** Whether the text `null` stands for null, because it cannot be a value: free text can be anything. */
  readonly hasNullText: boolean;
}

/** @throws TypeError when an operation has a parameter that a path or a query cannot carry */
export function listOperations(router: AnyTRPCRouter): Operation[] {
  return Object.entries(router._def.procedures).map(([name, procedure]) => {
    const definition = (procedure as { _def: OperationDefinition })._def;
    const { meta, inputs, output } = definition;
    const { openapi, ...rest } = meta;
    const { method, path, summary, description = summary } = openapi;
    const [input] = inputs;
    const { properties, resolve } = readMembers(input);
    const parameters = listParameters(name, properties, resolve, openapi);
    return {
      ...rest,
      name,
      method,
      path,
      summary,
      description,
      input,
      output: output instanceof z.ZodVoid ? undefined : output,
      parameters,
      takesBody: METHODS_WITH_BODY.has(method) && Object.keys(properties).length > parameters.length,
      mayBegin: mayBegin(definition),
    };
  });
}

function mayBegin(definition: OperationDefinition): boolean {
  const { openapi, freeForKey, waitsForLimit = false } = definition.meta;
  return openapi.method === 'GET' && freeForKey === undefined && !waitsForLimit && !hasMiddleware(definition);
}

/** Whether an operation returns a page of a list: if it takes a cursor, it has a next page. */
export function isPage({ parameters }: Operation): boolean {
  return parameters.some(({ name }) => name === 'cursor');
}

type JsonSchema = z.core.JSONSchema._JSONSchema;

/** The members of an input, and a function that finds the schema of a member. */
function readMembers(input: z.ZodType | undefined) {
  const root: z.core.JSONSchema.BaseSchema =
    input === undefined ? {} : z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' });
  // A schema with an id is written to the definitions and referenced.
  const resolve = (schema: JsonSchema = {}) => {
    const id = typeof schema === 'object' ? schema.$ref?.split('/').at(-1) : undefined;
    return (id === undefined ? schema : root.$defs?.[id]) as z.core.JSONSchema.JSONSchema;
  };
  return { properties: resolve(root).properties ?? {}, resolve };
}

function listParameters(
  name: string,
  properties: Readonly<Record<string, JsonSchema>>,
  resolve: ReturnType<typeof readMembers>['resolve'],
  { method, path }: OperationMeta['openapi'],
): OperationParameter[] {
  return Object.entries(properties).flatMap(([member, property]): OperationParameter[] => {
    const isInPath = path.includes(`{${member}}`);
    if (!isInPath && METHODS_WITH_BODY.has(method)) return [];
    const { type, anyOf, oneOf, enum: values } = resolve(property);
    const what = type === 'array' || type === 'object' ? `an ${type}` : (anyOf ?? oneOf) && 'a union';
    if (what !== undefined) {
      throw new TypeError(
        `${name}: ${member} is ${what}, which neither a path nor a query can carry: declare one parameter for each value, or take it in the body of a POST`,
      );
    }
    const isScalar = type === 'integer' || type === 'number' || type === 'boolean';
    return [
      {
        name: member,
        in: isInPath ? 'path' : 'query',
        type: isScalar ? type : 'string',
        hasNullText: isScalar || values?.includes('null') === false,
      },
    ];
  });
}
