import type { NewPet, Pet, Scope } from '@animal-store/client';
import { useId } from 'react';
import { useCategory } from './categories.js';
import { Illustration } from './illustration.js';
import { PetActions } from './pet-actions.js';
import { STATUS_LABELS } from './vocabulary.js';

/** An animal of the catalogue, or one without an id that is still being saved. */
type DisplayedPet = Pet | (NewPet & { readonly id?: undefined });

/** Names with more UTF-16 code units than this are set smaller, and truncated visually if that is not enough. */
const LONG_NAME = 60;
/** Names with a word this long are truncated sooner: what cannot be wrapped between words is hard to read anyway. */
const UNBROKEN_NAME = /\S{30}/;

export interface PetCardProps {
  readonly pet: DisplayedPet;
  readonly isNew?: boolean;
  /** Of the key: what may be done with the animal */
  readonly scopes: readonly Scope[];
  readonly onChange: (pet: Pet) => void;
}

export function PetCard({ pet, isNew = false, scopes, onChange }: PetCardProps) {
  const labelId = useId();
  const { id, name, categoryId, status } = pet;
  const isSaving = id === undefined;
  const { label, kind } = useCategory(categoryId);
  const isUnbroken = UNBROKEN_NAME.test(name);
  const isLong = isUnbroken || name.length > LONG_NAME;
  return (
    <li
      className="card"
      tabIndex={-1}
      data-state={isSaving ? 'saving' : isNew ? 'new' : 'saved'}
      aria-busy={isSaving}
    >
      <article>
        <div className="plate" data-kind={kind}>
          <Illustration name={name} kind={kind} />
          {isSaving && <span className="tag">Saving…</span>}
          {isNew && <span className="tag">Just added</span>}
        </div>
        <div className="card-text">
          <p className="card-category">{label}</p>
          <h3
            id={labelId}
            className="card-name"
            dir="auto"
            data-long={isLong}
            data-unbroken={isUnbroken}
            title={isLong ? name : undefined}
          >
            <Name name={name} />
          </h3>
          <p className="card-foot">
            {status !== undefined && (
              <span className="badge" data-status={status}>
                {STATUS_LABELS[status]}
              </span>
            )}
            <span className="card-number">{isSaving ? '' : `No. ${id}`}</span>
          </p>
          {pet.id !== undefined && (
            <PetActions pet={pet} scopes={scopes} labelId={labelId} onChange={onChange} />
          )}
        </div>
      </article>
    </li>
  );
}

/** A call name, and a description after a comma: `Miso, Siamese, 4 months` */
const CALL_NAME = /^([^,]{1,40}), (.+)$/s;

/** The full name, with the call name emphasized if there is one. */
function Name({ name }: { name: string }) {
  const [, first, rest] = CALL_NAME.exec(name) ?? [];
  if (first === undefined) return name;
  return (
    <>
      <span className="card-call-name">
        {first}
        <span className="card-comma">, </span>
      </span>
      <span className="card-detail">{rest}</span>
    </>
  );
}

/** A placeholder for a card that is loading. */
export function CardSkeleton() {
  return (
    <li className="card skeleton" aria-hidden="true">
      <div className="plate" />
      <div className="card-text">
        <span className="bone" />
        <span className="bone wide" />
        <span className="bone" />
      </div>
    </li>
  );
}
