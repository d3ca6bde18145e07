import { z } from 'zod';
import { ApiError, isName } from './baseline-input.js';
import { STATUSES } from './case.js';

/*
 * What bench/hono.ts accepts.
 */

const MAX = Number.MAX_SAFE_INTEGER;

const queryInteger = (min: number, max: number) =>
  z
    .string()
    .regex(/^-?\d+$/)
    .transform(Number)
    .pipe(z.number().min(min).max(max));
export const pageQuery = z.object({
  limit: queryInteger(1, 100).default(20),
  cursor: queryInteger(-MAX, MAX).default(-MAX),
  status: z.enum(STATUSES).optional(),
});
export const newPet = z.object({
  name: z.string().refine(isName, 'must have 1 to 200 characters'),
  categoryId: z.int(),
  status: z.enum(STATUSES).default('available'),
});

export const petChange = z
  .object({ categoryId: z.int().optional(), status: z.enum(STATUSES).optional() })
  .refine(({ categoryId, status }) => categoryId !== undefined || status !== undefined);
export type PetChange = z.output<typeof petChange>;
export const newOrder = z.object({ petId: z.int() });
export const orderChange = z.object({ status: z.enum(['approved', 'delivered', 'cancelled']) });

export function validate<T>(schema: z.ZodType<T>) {
  return (input: unknown): T => {
    const { data, error } = schema.safeParse(input);
    if (error === undefined) return data;
    throw new ApiError(400, 'invalid_request', z.prettifyError(error));
  };
}
