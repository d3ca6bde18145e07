/**
 * A ref for a button that is removed once it has been used. If the button has the focus at that time, the focus moves
 * to the last animal in the catalogue, or to the heading if there is none; otherwise keyboard users would start again
 * at the top of the page.
 */
export function moveFocusOnRemoval(button: HTMLElement | null): () => void {
  const catalogue = button?.closest('.catalogue');
  return () => {
    if (button !== document.activeElement) return;
    const cards = [...(catalogue?.querySelectorAll<HTMLElement>('.card:not(.skeleton)') ?? [])];
    const next = cards.at(-1) ?? catalogue?.querySelector<HTMLElement>('#catalogue-heading');
    next?.focus({ preventScroll: true });
  };
}

/** The same for a button of a card: the focus moves to its card, which says what has come of it. */
export const moveFocusToCard = (button: HTMLElement | null) => moveFocusTo('.card', button);
/** and for one of an order. */
export const moveFocusToRow = (button: HTMLElement | null) => moveFocusTo('tr', button);

function moveFocusTo(selector: string, button: HTMLElement | null): () => void {
  const around = button?.closest<HTMLElement>(selector);
  return () => {
    if (button === document.activeElement) around?.focus({ preventScroll: true });
  };
}
