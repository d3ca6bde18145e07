import type { AnyTRPCRouter } from '@trpc/server';
import type { OpenApiMeta } from 'trpc-to-openapi';
import { z } from 'zod';

/** One operation as REST serves it, read once from its procedure. */
export interface Operation {
  readonly name: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** As in the OpenAPI document, relative to the version: /pets/{petId} */
  readonly path: string;
  /** The members of its input */
  readonly fields: readonly { readonly name: string; readonly isNumber: boolean }[];
}

export function listOperations(router: AnyTRPCRouter): Operation[] {
  return Object.entries(router._def.procedures).flatMap(([name, procedure]) => {
    const { meta, inputs } = (procedure as { _def: { meta?: OpenApiMeta; inputs: z.ZodType[] } })._def;
    if (!meta?.openapi) return [];
    return [
      { name, method: meta.openapi.method, path: meta.openapi.path, fields: inputs.flatMap(listFields) },
    ];
  });
}

function listFields(input: z.ZodType): Operation['fields'] {
  const { properties = {} } = z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' });
  return Object.entries(properties).map(([name, property]) => ({
    name,
    isNumber: typeof property === 'object' && (property.type === 'number' || property.type === 'integer'),
  }));
}
