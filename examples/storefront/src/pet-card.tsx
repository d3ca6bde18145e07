import type { NewPet, Pet } from '@animal-store/client';
import { Illustration } from './illustration.js';
import { categoryOf, STATUS_LABELS } from './vocabulary.js';

/** An animal of the catalogue, or one that is on its way there: not yet saved, it has no id. */
export type Shown = Pet | (NewPet & { readonly id?: undefined });

/** UTF-16 units above which a name is set smaller, and cut short to the eye where even that is too much */
const LONG = 60;

export function PetCard({ pet, isNew = false }: { pet: Shown; isNew?: boolean }) {
  const { id, name, categoryId, status } = pet;
  const isSaving = id === undefined;
  const { label, kind } = categoryOf(categoryId);
  return (
    <li
      className="card"
      tabIndex={-1}
      data-state={isSaving ? 'saving' : isNew ? 'new' : 'saved'}
      aria-busy={isSaving}
    >
      <article>
        <div className="plate" data-kind={kind}>
          <Illustration name={name} categoryId={categoryId} />
          {isSaving && <span className="tag">Saving…</span>}
          {isNew && <span className="tag">Just added</span>}
        </div>
        <div className="card-words">
          <p className="card-category">{label}</p>
          <h3
            className="card-name"
            dir="auto"
            data-long={name.length > LONG}
            title={name.length > LONG ? name : undefined}
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
        </div>
      </article>
    </li>
  );
}

/** A call name that a comma sets apart: `Miso, Siamese, 4 months` */
const CALL_NAME = /^([^,]{1,40}), (.+)$/s;

/** The name in full, its first part standing out where there is one. */
function Name({ name }: { name: string }) {
  const [, first, rest] = CALL_NAME.exec(name) ?? [];
  if (first === undefined) return name;
  return (
    <>
      {first}
      <span className="visually-hidden">, </span>
      <span className="card-detail">{rest}</span>
    </>
  );
}

/** Stands where a card will be. */
export function CardSkeleton() {
  return (
    <li className="card skeleton" aria-hidden="true">
      <div className="plate" />
      <div className="card-words">
        <span className="bone" />
        <span className="bone wide" />
        <span className="bone" />
      </div>
    </li>
  );
}
