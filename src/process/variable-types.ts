import { isIP } from 'node:net';
import { z } from 'zod';

/*
 * What the text of a variable may be. config.ts says which variable is which.
 */

export function wholeNumber(min: number, max: number) {
  const error = `must be a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(/^\d+$/, { error, abort: true })
    .transform(Number)
    .pipe(z.number().min(min, { error }).max(max, { error }));
}

/** Turns what `parse` throws into the message about the variable. */
export function orIssue<T>(parse: (text: string) => T) {
  return (text: string, context: z.RefinementCtx): T => {
    try {
      return parse(text);
    } catch (error) {
      context.addIssue((error as Error).message);
      return z.NEVER;
    }
  };
}

export function list(item: z.ZodType<string, string>) {
  return z.string().default('').transform(splitList).pipe(z.array(item));
}

export function splitList(text: string): string[] {
  const parts = text.split(',').map((part) => part.trim());
  return parts.filter((part) => part !== '');
}

/** A URL to append paths to: normalized so that it is valid in a header, and without a trailing slash. */
export function baseUrl() {
  const error = 'must be a URL without user, query, fragment, or the /v1 that the service adds';
  return z
    .string()
    .refine(isHttpUrl, 'must be a URL that starts with http:// or https://')
    .refine((text) => !URL.canParse(text) || isBase(new URL(text)), error)
    .transform((text) => (URL.canParse(text) ? new URL(text).href.replace(/\/+$/, '') : text));
}

function isHttpUrl(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
}

function isBase({ href, username, password, pathname }: URL): boolean {
  return username === '' && password === '' && !/[?#]/.test(href) && !/\/v1\/*$/.test(pathname);
}

export function isAddressOrBlock(text: string): boolean {
  const [address = '', prefix, ...rest] = text.split('/');
  const version = isIP(address);
  if (version === 0 || rest.length > 0) return false;
  const isPrefix = (bits: string) =>
    /^[1-9]\d{0,2}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128);
  return prefix === undefined || isPrefix(prefix);
}

export function isOrigin(text: string): boolean {
  return isHttpUrl(text) && new URL(text).origin === text;
}
