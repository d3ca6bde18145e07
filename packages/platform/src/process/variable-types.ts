import { isIP } from 'node:net';
import { parseRedisUrls } from '@animal-store/limits';
import { z } from 'zod';

/*
 * What the text of a variable may be. config.ts says which variable is which.
 */

export function wholeNumber(min: number, max: number) {
  const isInRange = (text: string) => /^\d+$/.test(text) && Number(text) >= min && Number(text) <= max;
  return z.string().refine(isInRange, `must be a whole number from ${min} to ${max}`).transform(Number);
}

export function list(isItem: (text: string) => boolean, message: string) {
  return z
    .string()
    .default('')
    .transform(splitList)
    .pipe(z.array(z.string().refine(isItem, message)));
}

export function splitList(text: string): string[] {
  const parts = text.split(',').map((part) => part.trim());
  return parts.filter((part) => part !== '');
}

/** A URL to append paths to: normalized so that it is valid in a header, and without a trailing slash. */
export function baseUrl() {
  return z
    .string()
    .refine(isHttpUrl, { error: 'must be a URL that starts with http:// or https://', abort: true })
    .transform((text) => new URL(text))
    .refine(isBase, 'must be a URL without user, query, fragment, or the /v1 that the service adds')
    .transform(({ href }) => href.replace(/\/+$/, ''));
}

function isHttpUrl(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
}

function isBase({ href, username, password, pathname }: URL): boolean {
  return username === '' && password === '' && !/[?#]/.test(href) && !/\/v1\/*$/.test(pathname);
}

export function isAddressOrBlock(text: string): boolean {
  const [, address = '', prefix = '1'] = /^([^/%]+)(?:\/([1-9]\d{0,2}))?$/.exec(text) ?? [];
  const version = isIP(address);
  return version !== 0 && Number(prefix) <= (version === 4 ? 32 : 128);
}

/** The origins of pages in apps (Capacitor, Ionic, Tauri, Electron) and extensions, which `URL` gives as `null`. */
const APP_ORIGIN = /^(?:app|capacitor|chrome-extension|ionic|moz-extension|tauri):\/\/[a-z\d._-]+(?::\d+)?$/;

/** Whether a text is what browsers send as `Origin` (RFC 6454, section 6.2), but not the `null` of pages without one. */
export function isOrigin(text: string): boolean {
  return APP_ORIGIN.test(text) || (isHttpUrl(text) && new URL(text).origin === text);
}

export function redisUrls() {
  return z
    .string()
    .default('')
    .transform((text, context) => {
      try {
        return parseRedisUrls(text);
      } catch (error) {
        context.addIssue((error as Error).message);
        return z.NEVER;
      }
    });
}
