/* The key that the reader has entered. The pages in one tab of the browser share it, and it ends with the tab. */
const ITEM = 'animal-store-key';
const KEY = /^as_(?:live|test)_[A-Za-z0-9]+$/;

/** What was entered, which may be anything; empty if nothing was. */
export function readKey() {
  return sessionStorage.getItem(ITEM) ?? '';
}

export function keepKey(text) {
  sessionStorage.setItem(ITEM, text.trim());
}

export function isKey(text) {
  return KEY.test(text);
}
