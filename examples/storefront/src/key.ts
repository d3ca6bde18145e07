const STORAGE_KEY = 'animal-store:key';

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
  return sessionStorage.getItem(STORAGE_KEY) ?? undefined;
}

export function keepKey(key: string): void {
  sessionStorage.setItem(STORAGE_KEY, key);
}

export function forgetKey(): void {
  sessionStorage.removeItem(STORAGE_KEY);
}
