import type { PetStatus } from '@animal-store/client';
import { type FormEvent, useId, useRef, useState } from 'react';
import { flushSync } from 'react-dom';
import { CategoryField } from './category-field.js';
import { BLANK, createSave, type Draft, findProblems, type Save } from './draft.js';
import { FIELDS, type Field, FieldError, type FieldErrors, readFieldErrors } from './field-errors.js';
import { type Failure, SaveRow, useWait } from './save-row.js';
import { STATUS_LABELS, STATUSES } from './vocabulary.js';

export interface AddPetProps {
  readonly isSaving: boolean;
  /** Whether the service responds again after a save that did not reach it */
  readonly isBack: boolean;
  /** Rejects if the call fails. */
  readonly onSubmit: (save: Save) => Promise<unknown>;
}

/** The form that adds an animal. It keeps its contents until the animal is saved. */
export function AddPet({ isSaving, isBack, onSubmit }: AddPetProps) {
  const [draft, setDraft] = useState(BLANK);
  const [errors, setErrors] = useState<FieldErrors>({});
  const [failure, setFailure] = useState<Failure>();
  const [savedName, setSavedName] = useState<string>();
  const [isOpen, setOpen] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const failedSave = useRef<Save>(undefined);
  const id = useId();

  const waitSeconds = useWait(failure);

  const showErrors = (found: FieldErrors) => {
    // Screen readers read a field's error when the field receives focus, so it has to be rendered before.
    flushSync(() => setErrors(found));
    focusFirst(form.current, found);
  };

  const change = (changed: Partial<Draft>) => {
    setDraft({ ...draft, ...changed });
    const remaining = Object.entries(errors).filter(([field]) => !(field in changed));
    if (remaining.length < Object.keys(errors).length) setErrors(Object.fromEntries(remaining));
  };

  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (isSaving || waitSeconds > 0) return;
    const problems = findProblems(draft);
    setFailure(undefined);
    setSavedName(undefined);
    showErrors(problems);
    if (Object.keys(problems).length > 0) return;
    const save = createSave(draft, failedSave.current);
    failedSave.current = save;
    try {
      await onSubmit(save);
      failedSave.current = undefined;
      setSavedName(draft.name);
      // If the user has typed in the meantime, that is already the next animal.
      const { categoryId, isOtherCategory } = draft;
      setDraft((current) => (current === draft ? { ...BLANK, categoryId, isOtherCategory } : current));
      if (!isFocusElsewhere(form.current)) focusField(form.current, 'name');
    } catch (error) {
      const found = readFieldErrors(error);
      if (found === undefined) setFailure({ error, atMs: Date.now() });
      else showErrors(found);
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
        <div className="add-fields">
          <NameField name={draft.name} error={errors.name} onChange={(name) => change({ name })} />
          <CategoryField
            categoryId={draft.categoryId}
            isOther={draft.isOtherCategory}
            name={draft.categoryName}
            error={errors.categoryId}
            onChange={(categoryId, isOtherCategory) => change({ categoryId, isOtherCategory })}
            onNameChange={(categoryName) => change({ categoryName })}
          />
          <StatusField
            status={draft.status}
            error={errors.status}
            onChange={(status) => change({ status })}
          />
        </div>
        <SaveRow
          failure={failure}
          savedName={savedName}
          onSavedShown={() => setSavedName(undefined)}
          isSaving={isSaving}
          isBack={isBack}
          waitSeconds={waitSeconds}
        />
      </form>
    </section>
  );
}

/** A placeholder until it is known whether the key may add animals. */
export function FormSkeleton() {
  return (
    <div className="add skeleton" aria-hidden="true">
      <div className="form-bone" />
    </div>
  );
}

interface FieldProps {
  readonly error: string | undefined;
}

function NameField({
  name,
  error,
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
        aria-invalid={error !== undefined}
        aria-describedby={error === undefined ? undefined : `${id}-error`}
      />
      <FieldError id={`${id}-error`} text={error} />
    </div>
  );
}

function StatusField({
  status,
  error,
  onChange,
}: FieldProps & { status: PetStatus; onChange: (status: PetStatus) => void }) {
  const id = useId();
  return (
    <fieldset className="field" data-field="status" aria-describedby={error && `${id}-error`}>
      <legend>Status</legend>
      <div className="segments wide">
        {STATUSES.map((choice) => (
          <label key={choice}>
            <input type="radio" name={id} checked={status === choice} onChange={() => onChange(choice)} />
            <span>{STATUS_LABELS[choice]}</span>
          </label>
        ))}
      </div>
      <FieldError id={`${id}-error`} text={error} />
    </fieldset>
  );
}

/**
 * Whether the user has gone on to another part of the page. In browsers that do not focus a button when it is clicked,
 * the focus is on the body then.
 */
function isFocusElsewhere(form: HTMLFormElement | null): boolean {
  const { activeElement, body } = document;
  return activeElement !== body && form?.contains(activeElement) === false;
}

function focusFirst(form: HTMLFormElement | null, errors: FieldErrors): void {
  const first = FIELDS.find((field) => errors[field] !== undefined);
  if (first !== undefined) focusField(form, first);
}

/** Focuses what is typed or chosen there, and scrolls to the whole field, whose error is below it. */
function focusField(form: HTMLFormElement | null, field: Field): void {
  const inputs = [...(form?.querySelectorAll<HTMLInputElement>(`[data-field=${field}] input`) ?? [])];
  const typed = inputs.find(({ type }) => type !== 'radio');
  const input = typed ?? inputs.find(({ checked }) => checked) ?? inputs[0];
  input?.focus();
  input?.closest('.field')?.scrollIntoView({ block: 'nearest' });
}
