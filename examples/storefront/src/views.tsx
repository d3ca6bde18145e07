import { useChoiceInAddress } from './choice-in-address.js';
import './orders.css';

const VIEWS = ['orders'] as const;
type View = (typeof VIEWS)[number] | undefined;
const LABELS: readonly [View, string][] = [
  [undefined, 'Animals'],
  ['orders', 'Orders'],
];

export function useView() {
  return useChoiceInAddress('view', VIEWS);
}

/** What is beside the form: the catalogue, or the orders. Only keys that may read orders get the choice. */
export function Views({ view, onChange }: { view: View; onChange: (view: View) => void }) {
  return (
    <nav className="views" aria-label="What to see">
      {LABELS.map(([each, label]) => (
        <button
          key={label}
          type="button"
          aria-current={view === each ? 'page' : undefined}
          onClick={() => onChange(each)}
        >
          {label}
        </button>
      ))}
    </nav>
  );
}
