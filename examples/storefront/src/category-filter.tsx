import { useId } from 'react';
import { useCategories } from './categories.js';

/** The number of any category: an address may be of one that has no name. */
export const CATEGORY_CHOICES = /^[1-9]\d{0,14}$/;

export interface CategoryFilterProps {
  readonly category: string | undefined;
  readonly onChange: (category: string | undefined) => void;
}

/** A native select: there are too many categories for a row of segments beside that of the statuses. */
export function CategoryFilter({ category, onChange }: CategoryFilterProps) {
  const id = useId();
  const categories = useCategories();
  const isNamed = category === undefined || categories.has(Number(category));
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
        {!isNamed && <option value={category}>Category {category}</option>}
        {[...categories].map(([number, { label }]) => (
          <option key={number} value={number}>
            {label}
          </option>
        ))}
      </select>
    </p>
  );
}
