/* The key that the reader has entered. The pages in one tab of the browser share it, and it is forgotten with the tab. */
import { createItem } from './storage.js';

const KEY = /^ms_(?:live|test)_[A-Za-z0-9]+$/;

const item = createItem('sessionStorage', 'my-store-key');

/** The text that was entered, which may be anything; empty if nothing was. */
export function readKey() {
  return item.read() ?? '';
}

export function keepKey(text) {
  item.keep(text.trim());
}

export function isKey(text) {
  return KEY.test(text);
}
