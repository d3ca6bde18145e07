import type { PetStatus } from '@animal-store/client';
import { STATUS_LABELS, STATUSES } from './vocabulary.js';

export interface StatusFilterProps {
  readonly status: PetStatus | undefined;
  readonly onChange: (status: PetStatus | undefined) => void;
}

/** Native radio buttons, so that arrow keys and screen readers work as everywhere. */
export function StatusFilter({ status, onChange }: StatusFilterProps) {
  return (
    <fieldset className="segments">
      <legend className="visually-hidden">Show animals by status</legend>
      {[undefined, ...STATUSES].map((choice) => (
        <label key={choice ?? 'all'}>
          <input type="radio" name="filter" checked={status === choice} onChange={() => onChange(choice)} />
          <span>{choice === undefined ? 'All' : STATUS_LABELS[choice]}</span>
        </label>
      ))}
    </fieldset>
  );
}
