import { goTo, useChoiceInAddress } from './choice-in-address.js';
import './orders.css';

const VIEWS = ['orders'] as const;
type View = (typeof VIEWS)[number] | undefined;
const LABELS: readonly [View, string][] = [
  [undefined, 'Animals'],
  ['orders', 'Orders'],
];

export const useView = () => useChoiceInAddress('view', VIEWS)[0];

/** Shows the orders, all or those of one animal. */
export const showOrders = (animal?: number) => goTo({ view: 'orders', animal: animal?.toString() });
const showAnimals = () => goTo({ view: undefined, animal: undefined, progress: undefined });

/** What is beside the form: the catalogue, or the orders. Only keys that may read orders get the choice. */
export function Views({ view }: { view: View }) {
  return (
    <nav className="views" aria-label="What to see">
      {LABELS.map(([each, label]) => (
        <button
          key={label}
          type="button"
          aria-current={view === each ? 'page' : undefined}
          onClick={() => (each === 'orders' ? showOrders() : showAnimals())}
        >
          {label}
        </button>
      ))}
    </nav>
  );
}
