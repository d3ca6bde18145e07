import { z } from 'zod';

/** A JSON Schema, 2020-12, without references, which not every client resolves */
export type JsonSchema = z.core.JSONSchema.BaseSchema;

/** Members that zod-openapi reads, besides those of JSON Schema */
interface Meta {
  readonly id?: string;
  readonly override?: object | ((context: { jsonSchema: JsonSchema; path: readonly never[] }) => void);
}

/** Without metadata zod writes every schema where it is used, instead of referring to it by its id. */
const NO_METADATA = z.registry<Record<string, never>>();

/**
 * The JSON Schema of an input or an output, as the OpenAPI document has it.
 *
 * @param io whether members with a default may be left out
 */
export function toToolSchema(schema: z.ZodType, io: 'input' | 'output'): JsonSchema {
  const { $schema: _dialect, ...result } = z.toJSONSchema(schema, {
    io,
    metadata: NO_METADATA,
    unrepresentable: 'any',
    override({ zodSchema, jsonSchema }) {
      const { id: _id, override, ...meta } = (z.globalRegistry.get(zodSchema) ?? {}) as Meta;
      Object.assign(jsonSchema, meta);
      if (typeof override === 'function') override({ jsonSchema, path: [] });
      else Object.assign(jsonSchema, override);
      // This counts the members of a body, which exclude an id in the path. The arguments of a tool include the id.
      delete jsonSchema.minProperties;
      // Later versions may return further members.
      if (jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
      // This format is OpenAPI's and unknown to JSON Schema. The bounds say the same.
      if (/^int\d+$/.test(jsonSchema.format ?? '')) delete jsonSchema.format;
    },
  });
  return result;
}

/**
 * Arguments are an object, even for an operation that takes none. Unknown members are refused, because a model that asks
 * for a filter which does not exist must not get everything.
 */
export function toArgumentsSchema(schema: z.ZodType | undefined): JsonSchema & { type: 'object' } {
  // A default of the whole object is for calls without arguments, which a tool gets as an empty object. A description of the
  // whole object is that of a body, which may have further members; the tool has its own.
  const {
    default: _default,
    description: _description,
    ...rest
  } = schema === undefined ? {} : toToolSchema(schema, 'input');
  const { properties = {} } = rest;
  return { ...rest, type: 'object', properties, additionalProperties: rest.additionalProperties ?? false };
}
