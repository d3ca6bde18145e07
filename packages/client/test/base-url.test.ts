import { createClient } from '@animal-store/client';
import { expect, test } from 'vitest';

const connect = (baseUrl: unknown) => () => createClient({ baseUrl: baseUrl as string, apiKey: '' });

test.each([
  'https://store.example.org/v1',
  'https://store.example.org/v1/',
  'https://store.example.org/trpc',
  'https://store.example.org/store/TRPC//',
  'store.example.org',
  'localhost:3000',
  '//store.example.org',
  '/store',
  'ftp://store.example.org',
  'http://',
  'https:///v1',
  'https://store.example.org?x=1',
  'https://store.example.org/#docs',
  ' https://store.example.org',
  'https://store.example.org /x',
])('%s cannot be the baseUrl, and the error says what can', (baseUrl) => {
  const message = `baseUrl must be an http(s) address without /v1 or /trpc, got ${JSON.stringify(baseUrl)}`;
  expect(connect(baseUrl)).toThrow(new TypeError(message));
});

test.each([undefined, null, 3000, new URL('https://store.example.org/v1')])('%s is no baseUrl', (baseUrl) => {
  const message = `baseUrl must be an http(s) address without /v1 or /trpc, got ${baseUrl}`;
  expect(connect(baseUrl)).toThrow(new TypeError(message));
});

test('a baseUrl with a password is refused without repeating it', () => {
  expect(connect('https://me:secret@store.example.org')).toThrow('got "https://…@store.example.org"');
});

test.each([
  '',
  'http://127.0.0.1:3000',
  'https://store.example.org/',
  'HTTPS://store.example.org/v1beta',
  'http://[::1]:3000/shop',
])('"%s" may be the baseUrl', (baseUrl) => {
  expect(connect(baseUrl)).not.toThrow();
});
