import type { z } from 'zod';
import type { Operation } from '../operations/list-operations.js';
import type { Schema, Schemas } from './operation.js';

/** Applies the `override` in a body's meta, which trpc-to-openapi loses when it removes the path parameters. */
export function applyOverride(schema: Schema, { input }: Operation): Schema {
  const override = input?.meta()?.override;
  if (typeof override !== 'function') return { ...schema, ...(override as Schema | undefined) };
  const jsonSchema = structuredClone(schema) as z.core.JSONSchema.BaseSchema;
  override({ jsonSchema, path: [] });
  return jsonSchema as Schema;
}

/**
 * Says in words what leaving out a member means, because generators take a member with a `default` for one always present.
 * Zod leaves out a description beside a reference that is the same as that of the referenced schema.
 *
 * @param named the schemas that members may refer to
 */
export function describeDefaults(schema: Schema, named: Schemas): Schema {
  const members = mapValues((schema.properties ?? {}) as Schemas, ({ default: value, ...member }) => {
    if (value === undefined) return member;
    const absence = `\`${JSON.stringify(value)}\` if left out`;
    const { description = named[String(member.$ref).replace('#/components/schemas/', '')]?.description } =
      member;
    return { ...member, description: [description, absence].filter(Boolean).join('; ') };
  });
  return { ...schema, properties: members };
}

/**
 * Leaves out `additionalProperties: false`, because generated clients would refuse members that a later version adds. The
 * schemas of requests stay as they are.
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
