import type { z } from 'zod';
import type { Operation } from '../operations/list-operations.js';
import type { Schema, Schemas } from './operation.js';

/** trpc-to-openapi copies a body without its path parameters, and the `override` in its meta gets lost. */
export function applyOverride(schema: Schema, { input }: Operation): Schema {
  const override = input?.meta()?.override;
  if (typeof override !== 'function') return { ...schema, ...(override as Schema | undefined) };
  const jsonSchema = structuredClone(schema) as z.core.JSONSchema.BaseSchema;
  override({ jsonSchema, path: [] });
  return jsonSchema as Schema;
}

/** Says in words what leaving out a member means: generators take one with a `default` for one always present. */
export function describeDefaults(schema: Schema): Schema {
  const members = mapValues((schema.properties ?? {}) as Schemas, ({ default: value, ...member }) => {
    if (value === undefined) return member;
    const absence = `\`${JSON.stringify(value)}\` if left out`;
    return { ...member, description: [member.description, absence].filter(Boolean).join('; ') };
  });
  return { ...schema, properties: members };
}

/**
 * Leaves out `additionalProperties: false`, by which generated clients would refuse a member that a later version adds.
 * The schemas of requests stay as they are.
 */
export function openResponses(schemas: Schemas, bodies: Schemas): Schemas {
  const open = (schema: Schema): Schema =>
    JSON.parse(JSON.stringify(schema), (key, value) =>
      key === 'additionalProperties' && value === false ? undefined : value,
    );
  return Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => [name, name in bodies ? schema : open(schema)]),
  );
}

export function mapValues<Value, Result>(
  values: Readonly<Record<string, Value>>,
  map: (value: Value) => Result,
): Record<string, Result> {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, map(value)]));
}
