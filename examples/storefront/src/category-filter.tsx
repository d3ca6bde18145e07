import { useId } from 'react';
import { CATEGORIES } from './vocabulary.js';

export const CATEGORY_CHOICES = [...CATEGORIES.keys()].map(String);

export interface CategoryFilterProps {
  readonly category: string | undefined;
  readonly onChange: (category: string | undefined) => void;
}

/** A native select: there are too many categories for a row of segments beside that of the statuses. */
export function CategoryFilter({ category, onChange }: CategoryFilterProps) {
  const id = useId();
  return (
    <p className="category-filter">
      <label className="visually-hidden" htmlFor={id}>
        Show animals of a category
      </label>
      <select
        id={id}
        className="select"
        value={category ?? ''}
        onChange={({ target }) => onChange(target.value || undefined)}
      >
        <option value="">All categories</option>
        {[...CATEGORIES].map(([number, { label }]) => (
          <option key={number} value={number}>
            {label}
          </option>
        ))}
      </select>
    </p>
  );
}
