import { useId } from 'react';
import { useCategories, useHasAllCategories } from './categories.js';
import { FieldError } from './field-errors.js';
import { KindIcon } from './illustration.js';

export interface CategoryFieldProps {
  /** As chosen or typed */
  readonly categoryId: string;
  /** Whether it is typed */
  readonly isOther: boolean;
  /** What a typed category without a name is to be called */
  readonly name: string;
  readonly error: string | undefined;
  readonly onChange: (categoryId: string, isOther: boolean) => void;
  readonly onNameChange: (name: string) => void;
}

/** Offers the known categories as tiles, and takes any other by its number. */
export function CategoryField(props: CategoryFieldProps) {
  const { categoryId, isOther, name, error, onChange, onNameChange } = props;
  const id = useId();
  const categories = useCategories();
  const known = categories.get(Number(categoryId))?.label;
  // A name replaces another for good, so it is asked for only where there is none.
  const isNameless = useHasAllCategories() && known === undefined;
  return (
    <fieldset className="field" data-field="categoryId" aria-describedby={error && `${id}-error`}>
      <legend>Category</legend>
      <div className="tiles">
        {[...categories].map(([number, { label, kind }]) => (
          <label key={number} className="tile" data-kind={kind}>
            <input
              type="radio"
              name={id}
              checked={!isOther && categoryId === String(number)}
              onChange={() => onChange(String(number), false)}
            />
            <KindIcon kind={kind} />
            <span>{label}</span>
          </label>
        ))}
        <label className="tile slim" data-kind="paw">
          <input type="radio" name={id} checked={isOther} onChange={() => onChange('', true)} />
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
          onChange={({ target }) => onChange(target.value, true)}
          aria-invalid={error !== undefined}
          aria-describedby={error === undefined ? undefined : `${id}-error`}
        />
      )}
      <FieldError id={`${id}-error`} text={error} />
      {isOther && known !== undefined && <p className="hint">It is called {known}.</p>}
      {isOther && isNameless && (
        <input
          className="other"
          aria-label="What the category is called"
          placeholder="Its name, if it has none yet"
          autoComplete="off"
          maxLength={200}
          value={name}
          onChange={({ target }) => onNameChange(target.value)}
        />
      )}
    </fieldset>
  );
}
