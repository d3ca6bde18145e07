/** A pattern, because React Native's `URL` is incomplete. */
const ADDRESS = /^https?:\/\/[^\s/?#@]+(?:\/[^\s?#]*)?$/i;
/** A path that follows the address in the service's documents, and is not part of the address */
const PREFIX = /\/(?:v1|trpc)$/i;

/**
 * Checks the address of a service.
 *
 * @returns the address without trailing slashes; the empty string, the page's own origin, as it is
 * @throws TypeError naming the address, without a password in it
 */
export function checkBaseUrl(baseUrl: string): string {
  if (baseUrl === '') return '';
  const address = String(baseUrl).replace(/\/+$/, '');
  if (typeof baseUrl === 'string' && ADDRESS.test(address) && !PREFIX.test(address)) return address;
  const shown =
    typeof baseUrl === 'string' ? JSON.stringify(baseUrl.replace(/\/\/.*@/, '//…@')) : String(baseUrl);
  throw new TypeError(`baseUrl must be an http(s) address without /v1 or /trpc, got ${shown}`);
}
