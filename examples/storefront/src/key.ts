const STORAGE_KEY = 'animal-store:key';

/** For a browser that blocks the storage along with cookies: the key ends with the page. */
let held: string | undefined;

/**
 * Returns the API key of this tab: from the address (`#key=…`, as `npm run storefront` prints it), from which it is
 * then removed, or from the session storage, which is deleted with the tab. It is stored nowhere else.
 */
export function readKey(): string | undefined {
  const key = new URLSearchParams(location.hash.slice(1)).get('key');
  if (key) {
    keepKey(key);
    history.replaceState(null, '', location.pathname + location.search);
  }
  return withStorage((storage) => storage.getItem(STORAGE_KEY)) ?? held;
}

export function keepKey(key: string): void {
  held = key;
  withStorage((storage) => storage.setItem(STORAGE_KEY, key));
}

export function forgetKey(): void {
  held = undefined;
  withStorage((storage) => storage.removeItem(STORAGE_KEY));
}

function withStorage<Result>(use: (storage: Storage) => Result): Result | undefined {
  try {
    return use(sessionStorage);
  } catch {
    return undefined;
  }
}
