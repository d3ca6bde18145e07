/**
 * A ref for a button that goes when it has done its work. When it has the focus then, the focus goes to the last animal
 * that was there before, or to the heading where there is none: otherwise whoever uses the keyboard starts at the top.
 */
export function handOnFocus(button: HTMLElement | null): () => void {
  const catalogue = button?.closest('.catalogue');
  return () => {
    if (button !== document.activeElement) return;
    const cards = [...(catalogue?.querySelectorAll<HTMLElement>('.card:not(.skeleton)') ?? [])];
    const next = cards.at(-1) ?? catalogue?.querySelector<HTMLElement>('#catalogue-heading');
    next?.focus({ preventScroll: true });
  };
}
