import type { NewPet, PetStatus } from '@animal-store/client';
import { type FormEvent, useId, useRef, useState } from 'react';
import { flushSync } from 'react-dom';
import { CategoryField } from './category-field.js';
import { Fault } from './fault.js';
import { FIELDS, type Field, type FieldFaults, readFieldFaults } from './field-faults.js';
import { type Failure, SaveRow, useWait } from './save-row.js';
import { STATUS_LABELS, STATUSES } from './vocabulary.js';

export interface AddPetProps {
  readonly isSaving: boolean;
  /** Rejects with what the call rejects with. */
  readonly onSubmit: (pet: NewPet) => Promise<unknown>;
}

/** What stands in the form; it may not be an animal yet. */
interface Draft {
  readonly name: string;
  readonly categoryId: string;
  readonly status: PetStatus;
}

const BLANK: Draft = { name: '', categoryId: '', status: STATUSES[0] ?? 'available' };

/** The form that adds an animal. What stands in it is kept until the animal is saved. */
export function AddPet({ isSaving, onSubmit }: AddPetProps) {
  const [draft, setDraft] = useState(BLANK);
  const [faults, setFaults] = useState<FieldFaults>({});
  const [failure, setFailure] = useState<Failure>();
  const [savedName, setSavedName] = useState<string>();
  const [isOpen, setOpen] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const id = useId();

  const waitSeconds = useWait(failure);

  const show = (found: FieldFaults) => {
    // A field's fault is read out with its focus, so it has to be there before.
    flushSync(() => setFaults(found));
    focusFirst(form.current, found);
  };

  const change = (changed: Partial<Draft>) => {
    setDraft({ ...draft, ...changed });
    const left = Object.entries(faults).filter(([field]) => !(field in changed));
    if (left.length < Object.keys(faults).length) setFaults(Object.fromEntries(left));
  };

  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (isSaving || waitSeconds > 0) return;
    const missing = findMissing(draft);
    setFailure(undefined);
    setSavedName(undefined);
    show(missing);
    if (Object.keys(missing).length > 0) return;
    try {
      await onSubmit({ ...draft, categoryId: Number(draft.categoryId) });
      setSavedName(draft.name);
      // What was typed meanwhile is the next animal.
      setDraft((current) => (current === draft ? { ...BLANK, categoryId: draft.categoryId } : current));
      focusField(form.current, 'name');
    } catch (error) {
      const found = readFieldFaults(error);
      if (found === undefined) setFailure({ error, atMs: Date.now() });
      else show(found);
    }
  };

  return (
    <section className="add" data-open={isOpen} aria-labelledby={`${id}-heading`}>
      <h2 id={`${id}-heading`}>Add an animal</h2>
      <button
        type="button"
        className={isOpen ? 'button quiet add-toggle' : 'button add-toggle'}
        aria-expanded={isOpen}
        aria-controls={`${id}-form`}
        onClick={() => setOpen(!isOpen)}
      >
        {isOpen ? 'Close' : 'Add an animal'}
      </button>
      <form ref={form} id={`${id}-form`} className="add-form" noValidate onSubmit={submit}>
        <NameField name={draft.name} fault={faults.name} onChange={(name) => change({ name })} />
        <CategoryField
          categoryId={draft.categoryId}
          fault={faults.categoryId}
          onChange={(categoryId) => change({ categoryId })}
        />
        <StatusField status={draft.status} fault={faults.status} onChange={(status) => change({ status })} />
        <SaveRow failure={failure} savedName={savedName} isSaving={isSaving} waitSeconds={waitSeconds} />
      </form>
    </section>
  );
}

interface FieldProps {
  readonly fault: string | undefined;
}

function NameField({
  name,
  fault,
  onChange,
}: FieldProps & { name: string; onChange: (name: string) => void }) {
  const id = useId();
  return (
    <div className="field" data-field="name">
      <label htmlFor={id}>Name</label>
      <input
        id={id}
        dir="auto"
        autoComplete="off"
        placeholder="Miso, Siamese, 4 months"
        value={name}
        onChange={({ target }) => onChange(target.value)}
        aria-required="true"
        aria-invalid={fault !== undefined}
        aria-describedby={fault === undefined ? undefined : `${id}-fault`}
      />
      <Fault id={`${id}-fault`} text={fault} />
    </div>
  );
}

function StatusField({
  status,
  fault,
  onChange,
}: FieldProps & { status: PetStatus; onChange: (status: PetStatus) => void }) {
  const id = useId();
  return (
    <fieldset className="field" data-field="status" aria-describedby={fault && `${id}-fault`}>
      <legend>Status</legend>
      <div className="segments wide">
        {STATUSES.map((choice) => (
          <label key={choice}>
            <input type="radio" name={id} checked={status === choice} onChange={() => onChange(choice)} />
            <span>{STATUS_LABELS[choice]}</span>
          </label>
        ))}
      </div>
      <Fault id={`${id}-fault`} text={fault} />
    </fieldset>
  );
}

/** What needs no service to be found. All else is the service's to judge. */
function findMissing({ name, categoryId }: Draft): FieldFaults {
  return {
    ...(name.trim() === '' ? { name: 'Give it a name.' } : {}),
    ...(categoryId.trim() === '' ? { categoryId: 'Choose a category.' } : {}),
  };
}

function focusFirst(form: HTMLFormElement | null, faults: FieldFaults): void {
  const first = FIELDS.find((field) => faults[field] !== undefined);
  if (first !== undefined) focusField(form, first);
}

function focusField(form: HTMLFormElement | null, field: Field): void {
  const inputs = form?.querySelectorAll<HTMLInputElement>(`[data-field=${field}] input`) ?? [];
  const [first] = inputs;
  ([...inputs].find(({ type, checked }) => type !== 'radio' || checked) ?? first)?.focus();
}
