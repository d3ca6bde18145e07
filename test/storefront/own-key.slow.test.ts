import { createCaller } from '@animal-store/platform/testing';
import { describe, expect, onTestFinished, test } from 'vitest';
import { findBrowser } from '../../packages/platform/test/support/browser.js';
import { SCOPES } from '../../src/definition/scopes.js';
import { startService } from '../support/service.js';
import { addPets, setUpStorefront } from '../support/storefront.js';
import {
  announcement,
  choose,
  expectFocusOn,
  expectNoErrors,
  FAILED_REQUESTS,
  FILTER,
  fill,
  names,
  numbers,
  POLL,
} from '../support/storefront-page.js';

const executable = findBrowser();

const DAY_MS = 86_400_000;

describe.skipIf(executable === undefined)('the storefront reads its key', { timeout: 60_000 }, () => {
  const { visit, inspect } = setUpStorefront(executable);

  /** Visits three animals with a key that has only some scopes, or expires, and has already been used. */
  async function visitWith({ scopes = SCOPES as readonly string[], expiresInMs = 0, used = 0 }) {
    const service = await startService();
    onTestFinished(() => service.close());
    await addPets(service, 3);
    const { key, apiKey } = await service.keys.create({
      name: 'storefront',
      scopes,
      plan: 'free',
      perMinute: null,
      perDay: null,
      expiresAt: expiresInMs === 0 ? null : new Date(Date.now() + expiresInMs),
    });
    const call = createCaller({ url: service.url, key });
    for (let count = 0; count < used; count += 1) await call('/v1/pets');
    return { ...(await visit({ service, key })), call, apiKey };
  }

  test('the gauge starts with what the key has left', async () => {
    const { page } = await visitWith({ used: 10 });
    await names(page).nth(2).waitFor();
    expect(await page.getByRole('meter').getAttribute('aria-valuetext')).toBe('47 of 60 left');
  });

  test('a key that may not write has the reason in place of the form', async () => {
    const visited = await visitWith({ scopes: ['pets:read'] });
    const { page } = visited;
    const notice = page.getByRole('region', { name: 'This key may not add animals' });
    await notice.getByText(/^It lacks the scope pets:write\./).waitFor();
    await names(page).nth(2).waitFor();
    expect(await page.getByRole('button', { name: /Save animal|Add an animal/ }).count()).toBe(0);
    expect(await page.getByLabel('Name').count()).toBe(0);
    await expectFocusOn(page.locator('body'));
    await inspect(page, 'read-only-from-the-start');
    expectNoErrors(visited);
  });

  test('a key that may no longer write when it saves gets the reason, and the catalogue stays', async () => {
    const visited = await visitWith({});
    const { page, service, call, apiKey } = visited;
    await names(page).nth(2).waitFor();
    await fill(page, { name: 'Miso', category: 'Cats', status: 'Available' });
    await service.keys.setScopesAll([apiKey.id], ['pets:read']);
    await expect.poll(async () => (await call('/v1/key')).body.scopes, POLL).toEqual(['pets:read']);
    await page.getByRole('button', { name: 'Save animal' }).click();
    const notice = page.getByRole('region', { name: 'This key may not add animals' });
    await notice.getByText('The animal was not saved. It lacks the scope pets:write.').waitFor();
    await expectFocusOn(notice.getByRole('heading'));
    await announcement(page, /Not saved. This key may not add animals/).waitFor({ state: 'attached' });
    expect(await page.getByLabel('Name').count()).toBe(0);
    expect(await numbers(page)).toEqual([1, 2, 3]);
    await inspect(page, 'read-only');
    await choose(page, FILTER, 'Sold');
    await page.getByText('That is everyone: 1 animal.').waitFor();
    expectNoErrors(visited, FAILED_REQUESTS);
  });

  test('with a key that may not read, the catalogue says which scope is missing, and the form stays', async () => {
    const visited = await visitWith({ scopes: ['pets:write', 'orders:read'] });
    const { page } = visited;
    const notice = page.getByRole('region', { name: 'This key may not look' });
    await notice.getByText('It lacks the scope pets:read.').waitFor();
    expect(await notice.getByRole('button').count()).toBe(0);
    await page.getByRole('button', { name: 'Save animal' }).waitFor();
    await inspect(page, 'no-catalogue');
    expectNoErrors(visited, FAILED_REQUESTS);
  });

  test('a key that expires within seven days is announced', async () => {
    const { page, apiKey } = await visitWith({ expiresInMs: 6.9 * DAY_MS });
    const notice = announcement(page, /^This key expires on \w+,? \d+ \w+/);
    await notice.waitFor();
    const expiresAt = await notice.locator('time').getAttribute('datetime');
    expect(expiresAt).toBe(apiKey.expiresAt?.toISOString());
    await announcement(page, 'All shown: 3 animals').waitFor({ state: 'attached' });
    await inspect(page, 'expiring');
    // Once it has ended, there is nothing to ask for in time.
    await page.clock.setFixedTime(Date.parse(expiresAt ?? '') + 1_000);
    await notice.waitFor({ state: 'detached' });
    // The pages of the other tests have the same clock.
    await page.clock.setSystemTime(Date.now());
  });

  test('a key that expires later is not', async () => {
    const { page } = await visitWith({ expiresInMs: 7.1 * DAY_MS });
    await names(page).nth(2).waitFor();
    await page.getByRole('button', { name: 'Save animal' }).waitFor();
    expect(await page.getByText('This key expires').count()).toBe(0);
  });

  test('a key that could not be read at the start is read with the catalogue when the service is back', async () => {
    const service = await startService();
    onTestFinished(() => service.close());
    await addPets(service, 3);
    const limits = { plan: 'free', perMinute: null, perDay: null, expiresAt: null } as const;
    const { key } = await service.keys.create({ name: 'narrow', scopes: ['pets:read'], ...limits });
    let isCut = true;
    const { page } = await visit({
      service,
      key,
      prepare: (opened) => opened.route('**/trpc/**', (route) => (isCut ? route.abort() : route.continue())),
    });
    await page.getByRole('region', { name: 'The store cannot be reached' }).waitFor();
    await page.getByRole('button', { name: 'Save animal' }).waitFor();
    isCut = false;
    await page.getByRole('region', { name: 'This key may not add animals' }).waitFor();
    await names(page).nth(2).waitFor();
  });
});
