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

/**
 * The service's complaint about each field. The message of an `invalid_request` reads `name is required; categoryId
 * must be …`. Undefined for any other error, and if the message names something that is not in the form.
 */
export function readFieldErrors(error: unknown): FieldErrors | undefined {
  if (!isApiError(error) || error.code !== 'invalid_request') return undefined;
  const errors: FieldErrors = {};
  for (const sentence of error.message.replace(/\.$/, '').split('; ')) {
    const [path = '', ...words] = sentence.split(' ');
    if (!Object.hasOwn(ORDER, path)) return undefined;
    errors[path as Field] ??= `It ${words.join(' ')}.`;
  }
  return errors;
}
