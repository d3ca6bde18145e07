export interface StatusFilterProps<Status extends string> {
  /** What is shown, for screen readers */
  readonly legend: string;
  readonly labels: Readonly<Record<Status, string>>;
  readonly status: Status | undefined;
  readonly onChange: (status: Status | undefined) => void;
}

/** Native radio buttons, so that arrow keys and screen readers work as everywhere. */
export function StatusFilter<Status extends string>({
  legend,
  labels,
  status,
  onChange,
}: StatusFilterProps<Status>) {
  return (
    <fieldset className="segments">
      <legend className="visually-hidden">{legend}</legend>
      {[undefined, ...(Object.keys(labels) as Status[])].map((choice) => (
        <label key={choice ?? 'all'}>
          <input type="radio" name="filter" checked={status === choice} onChange={() => onChange(choice)} />
          <span>{choice === undefined ? 'All' : labels[choice]}</span>
        </label>
      ))}
    </fieldset>
  );
}
