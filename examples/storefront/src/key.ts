const ENTRY = 'animal-store:key';

/**
 * The API key of this tab: from the address (`#key=…`, as `npm run storefront` prints it), which then forgets it, or
 * from the tab's session storage, which ends with the tab. It is kept nowhere else.
 */
export function readKey(): string | undefined {
  const key = new URLSearchParams(location.hash.slice(1)).get('key');
  if (key) {
    keepKey(key);
    history.replaceState(null, '', location.pathname + location.search);
  }
  return sessionStorage.getItem(ENTRY) ?? undefined;
}

export function keepKey(key: string): void {
  sessionStorage.setItem(ENTRY, key);
}

export function forgetKey(): void {
  sessionStorage.removeItem(ENTRY);
}
