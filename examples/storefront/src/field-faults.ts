import { isApiError, type NewPet } from '@animal-store/client';

export type Field = keyof NewPet;
export type FieldFaults = Partial<Record<Field, string>>;

/** Every field of the form, in its order: one that the service gains or loses fails the type-check here. */
const ORDER = { name: 0, categoryId: 1, status: 2 } as const satisfies Record<Field, number>;

export const FIELDS = Object.keys(ORDER) as Field[];

/**
 * What the service found wrong with each field. An `invalid_request` words it as `name is required; categoryId must
 * be …`; undefined when the failure is another one, or names something that the form does not have.
 */
export function readFieldFaults(error: unknown): FieldFaults | undefined {
  if (!isApiError(error) || error.code !== 'invalid_request') return undefined;
  const faults: FieldFaults = {};
  for (const sentence of error.message.replace(/\.$/, '').split('; ')) {
    const [path = '', ...words] = sentence.split(' ');
    if (!Object.hasOwn(ORDER, path)) return undefined;
    faults[path as Field] ??= `It ${words.join(' ')}.`;
  }
  return faults;
}
