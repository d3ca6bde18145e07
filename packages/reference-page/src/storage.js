/**
 * What a page keeps in a storage of the browser, `localStorage` or `sessionStorage`, under a name. If the storage is
 * blocked, as it is along with cookies, the value is kept until the page ends.
 */
export function createItem(storage, name) {
  let held;
  return {
    /** Undefined if there is none */
    read() {
      try {
        return window[storage].getItem(name) ?? undefined;
      } catch {
        return held;
      }
    },
    keep(text) {
      held = text;
      try {
        window[storage].setItem(name, text);
      } catch {
        // The value is held nevertheless.
      }
    },
  };
}
