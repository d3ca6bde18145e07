import type { AnyTRPCRouter } from '@trpc/server';
import { z } from 'zod';
import type { Deprecation } from '../deprecation.js';
import type { OperationMeta } from '../trpc.js';

/** One operation as REST serves it, read once from its procedure. */
export interface Operation {
  readonly name: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** As in the OpenAPI document, relative to the version: /pets/{petId} */
  readonly path: string;
  readonly deprecation: Deprecation | undefined;
  /** The members of its input */
  readonly fields: readonly { readonly name: string; readonly isNumber: boolean }[];
}

export function listOperations(router: AnyTRPCRouter): Operation[] {
  return Object.entries(router._def.procedures).flatMap(([name, procedure]) => {
    const { meta, inputs } = (procedure as { _def: { meta?: OperationMeta; inputs: z.ZodType[] } })._def;
    if (!meta?.openapi) return [];
    const { method, path } = meta.openapi;
    return [{ name, method, path, deprecation: meta.deprecation, fields: inputs.flatMap(listFields) }];
  });
}

function listFields(input: z.ZodType): Operation['fields'] {
  const { properties = {} } = z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' });
  return Object.entries(properties).map(([name, property]) => ({
    name,
    isNumber: typeof property === 'object' && (property.type === 'number' || property.type === 'integer'),
  }));
}
