import { useId, useState } from 'react';
import { FieldError } from './field-errors.js';
import { KindIcon } from './illustration.js';
import { CATEGORIES } from './vocabulary.js';

export interface CategoryFieldProps {
  /** As chosen or typed */
  readonly categoryId: string;
  readonly error: string | undefined;
  readonly onChange: (categoryId: string) => void;
}

/** Offers the known categories as tiles, and takes any other by its number. */
export function CategoryField({ categoryId, error, onChange }: CategoryFieldProps) {
  const [isOther, setOther] = useState(false);
  const id = useId();
  const choose = (other: boolean, chosen: string) => {
    setOther(other);
    onChange(chosen);
  };
  return (
    <fieldset className="field" data-field="categoryId" aria-describedby={error && `${id}-error`}>
      <legend>Category</legend>
      <div className="tiles">
        {[...CATEGORIES].map(([number, { label, kind }]) => (
          <label key={number} className="tile" data-kind={kind}>
            <input
              type="radio"
              name={id}
              checked={!isOther && categoryId === String(number)}
              onChange={() => choose(false, String(number))}
            />
            <KindIcon kind={kind} />
            <span>{label}</span>
          </label>
        ))}
        <label className="tile slim" data-kind="paw">
          <input type="radio" name={id} checked={isOther} onChange={() => choose(true, '')} />
          <KindIcon kind="paw" />
          <span>Another category</span>
        </label>
      </div>
      {isOther && (
        <input
          className="other"
          aria-label="Number of the category"
          placeholder="Its number"
          inputMode="numeric"
          autoComplete="off"
          value={categoryId}
          onChange={({ target }) => onChange(target.value)}
          aria-invalid={error !== undefined}
          aria-describedby={error === undefined ? undefined : `${id}-error`}
        />
      )}
      <FieldError id={`${id}-error`} text={error} />
    </fieldset>
  );
}
