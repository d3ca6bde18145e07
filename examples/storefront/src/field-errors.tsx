import { isApiError, type NewPet } from '@animal-store/client';

export type Field = keyof NewPet;
export type FieldErrors = Partial<Record<Field, string>>;

/** The fields in the order of the form. A field that the service adds or removes fails the type check here. */
const ORDER = { name: 0, categoryId: 1, status: 2 } as const satisfies Record<Field, number>;

export const FIELDS = Object.keys(ORDER) as Field[];

/** Shown beside its field, which refers to it with `aria-describedby`. */
export function FieldError({ id, text }: { id: string; text: string | undefined }) {
  return text === undefined ? null : (
    <p className="field-error" id={id}>
      {text}
    </p>
  );
}

/** The service's complaint about each field. Undefined for any other error, and if it is about a field not in the form. */
export function readFieldErrors(error: unknown): FieldErrors | undefined {
  if (!isApiError(error) || error.fields === undefined) return undefined;
  const errors: FieldErrors = {};
  for (const [name, problem] of Object.entries(error.fields)) {
    if (!Object.hasOwn(ORDER, name)) return undefined;
    errors[name as Field] = `It ${problem}.`;
  }
  return errors;
}
