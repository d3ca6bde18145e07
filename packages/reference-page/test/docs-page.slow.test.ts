import { mkdtemp } from 'node:fs/promises';
import { createServer, request as forward, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Caller, createCaller, post } from '@animal-store/platform/testing';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import {
  type Browser,
  findBrowser,
  findViolations,
  launchBrowser,
  openPage,
  type WatchedPage,
} from '../../platform/test/support/browser.js';
import { startService, type TestService } from '../../platform/test/support/test-service.js';
import { startBoatyard } from './boatyard.js';

const { prepareGuides } = await import(pathToFileURL('packages/reference-page/src/build/guides.js').href);

const REFERENCE_TIMEOUT_MS = 120_000;
/** Axe takes half a minute for a page alone on two cores, until it finds nothing that is still being rendered. */
const AXE_TIMEOUT_MS = 120_000;
/** More than all that a test waits for */
const OPTIONS = { timeout: 600_000 };

let service: TestService;
let call: Caller;
/** Another site whose scripts may call the service, and a proxy that serves it under a prefix */
let shop: Listener;
let proxy: Listener;

beforeAll(async () => {
  shop = await listen((_request, response) =>
    response.setHeader('content-type', 'text/html').end('<link rel="icon" href="data:,">A shop'),
  );
  service = await startService({ corsOrigins: [shop.origin] });
  call = createCaller(service);
  proxy = await listen((request, response) => {
    const { url = '', method, headers } = request;
    const forwarded = forward(service.url + url.replace(/^\/store/, ''), { method, headers }, (upstream) => {
      response.writeHead(upstream.statusCode ?? 502, upstream.headers);
      upstream.pipe(response);
    });
    request.pipe(forwarded);
  });
});
afterAll(async () => {
  for (const server of [shop, proxy]) server?.close();
  await service?.close();
});

interface Listener {
  readonly origin: string;
  close(): void;
}

async function listen(listener: RequestListener): Promise<Listener> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

const executable = findBrowser();

describe.skipIf(executable === undefined)('the reference page in a browser', OPTIONS, () => {
  let browser: Browser;
  let screenshots: string;

  beforeAll(async () => {
    browser = await launchBrowser(executable ?? '');
    screenshots = await mkdtemp(join(tmpdir(), 'animal-store-docs-'));
  });
  afterAll(() => browser?.close());

  /** Opens the page with a key pasted and the client for listPets open */
  async function openClient(base: string, key: string) {
    const watched = await openPage(browser.context);
    const { page } = watched;
    await page.goto(`${base}/docs#tag/pets`);
    await untilReference(page);
    await page.getByPlaceholder('Token').filter({ visible: true }).first().fill(key);
    await openOperation(page, 'get /pets');
    return { ...watched, client: page.getByRole('dialog') };
  }

  /** Until Scalar, which a busy machine runs slowly, has replaced the text. */
  async function untilReference(page: Page): Promise<void> {
    await page.locator('.text').waitFor({ state: 'detached', timeout: REFERENCE_TIMEOUT_MS });
  }

  async function openOperation(page: Page, operation: string): Promise<void> {
    await page.getByRole('button', { name: new RegExp(`^Test Request.*${operation}\\)`) }).click();
  }

  async function takeScreenshot(page: Page, name: string): Promise<void> {
    const path = join(screenshots, `${name}.png`);
    await page.screenshot({ path, animations: 'disabled' });
    console.log(`Screenshot: ${path}`);
  }

  function expectNoErrors({ origins, errors, messages }: WatchedPage, origin = service.url): void {
    expect([errors, messages]).toEqual([[], []]);
    expect([...origins]).toEqual([origin]);
  }

  test.each(['light', 'dark'] as const)(
    'lists all operations in the %s colour scheme',
    async (colorScheme) => {
      const watched = await openPage(browser.context);
      const { page } = watched;
      await page.emulateMedia({ colorScheme });
      await page.goto(`${service.url}/docs/`);
      await untilReference(page);
      for (const summary of await readSummaries()) {
        await page.getByRole('complementary').getByText(summary, { exact: true }).waitFor();
      }
      await page.locator(`body.${colorScheme}-mode`).waitFor();
      const colour = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      const [red = NaN] = colour.match(/\d+/g)?.map(Number) ?? [];
      expect(red > 128 ? 'light' : 'dark').toBe(colorScheme);
      await takeScreenshot(page, `page-${colorScheme}`);
      expectNoErrors(watched);
      await page.close();
    },
  );

  const GUIDES = [
    {
      name: '01-keys.md',
      text: '# Keys\n\n## Next steps\n\nSee [waiting](02-limits.md#wait-for-retry-after).',
    },
    {
      name: '02-limits.md',
      text: [
        '# Limits',
        '## Wait for `Retry-After`',
        `\`\`\`sh\ncurl ${'x'.repeat(300)}\n\`\`\``,
        `| header | what it says |\n| --- | --- |\n| \`X-RateLimit-Remaining\` | ${'left '.repeat(30)} |`,
        '## Next steps',
        '[Get a key](01-keys.md).',
        '### curl',
        '```bash\ncurl "$ANIMAL_STORE_URL/v1/pets"\n```',
        '### Python',
        "```python\nprint(os.environ['ANIMAL_STORE_URL'])\n```",
      ].join('\n\n'),
    },
  ];

  /** Opens the page at a section, with guides of this test in place of the repository's. */
  async function openGuides(
    hash: string,
    { colorScheme = 'light' }: { colorScheme?: 'light' | 'dark' } = {},
  ) {
    const watched = await openPage(browser.context);
    const { page } = watched;
    await page.setViewportSize({ width: 1440, height: 900 });
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await page.route('**/docs/guides.json', (route) =>
      route.fulfill({
        json: {
          ...prepareGuides(GUIDES),
          ...{ start: 'Begin.', client: 'client-1.0.0-0123456789abcdef.tgz', synonyms: {} },
        },
      }),
    );
    await page.goto(`${service.url}/docs${hash}`);
    await untilReference(page);
    await page.getByRole('heading', { name: 'Introduction', exact: true }).waitFor();
    return watched;
  }

  test('guides are sections after the operations, whose bounds are words, and the introduction links to the document', async () => {
    const { page, ...watched } = await openGuides('#tag/pets/GET/pets');
    const section = page.locator('[id$="tag/pets/GET/pets"]').first();
    await section.locator('.badge').getByText('stable').waitFor();
    await section.getByText('An integer from 1 to 100.').waitFor();
    expect(await section.innerText()).not.toContain('9007199254740991');

    const document = await fetch(`${service.url}/openapi.json`);
    const { tags } = (await document.json()) as { tags: { name: string }[] };
    const entries = page.getByRole('complementary').locator('ul').first().locator('> li');
    await expect
      .poll(async () => (await entries.allInnerTexts()).map((text) => text.trim().split('\n')[0]))
      .toEqual(['Introduction', ...tags.map(({ name }) => name), 'Keys', 'Limits', 'Models']);
    for (const [link, hash] of [
      ['waiting', '#description/wait-for-retry-after'],
      ['Get a key', '#description/keys'],
    ] as const) {
      await page.getByRole('link', { name: link, exact: true }).click();
      await expect.poll(() => new URL(page.url()).hash).toBe(hash);
      const heading = page.locator(`[id="animal-store/${hash.slice(1)}"]`).first();
      await expect.poll(async () => (await heading.boundingBox())?.y).toBeLessThan(400);
    }

    for (const name of ['JSON', 'YAML']) {
      const href = await page.getByRole('link', { name, exact: true }).getAttribute('href');
      const served = await fetch(new URL(href ?? '', page.url()));
      expect([name, served.status]).toEqual([name, 200]);
      expect(await served.text()).not.toContain('Wait for');
    }
    expectNoErrors({ page, ...watched });
    await page.close();
  });

  test.each([
    ['#description/limits', 'light'],
    ['#description/limits', 'dark'],
    ['#tag/pets/POST/pets', 'light'],
    ['#tag/pets/POST/pets', 'dark'],
  ] as const)('axe has no finding and nothing overflows at %s, %s', async (hash, colorScheme) => {
    const { page, ...watched } = await openGuides(hash, { colorScheme });
    await page
      .getByRole('button', { name: /^Test Request/ })
      .first()
      .waitFor({ state: 'attached' });
    for (const width of [1440, 390]) {
      await page.setViewportSize({ width, height: 900 });
      // Sections are repaired as they appear.
      await expect.poll(() => findViolations(page), { timeout: AXE_TIMEOUT_MS, interval: 1_000 }).toEqual([]);
      await page.keyboard.press('Control+k');
      await page.getByRole('searchbox').fill('limit');
      await page.getByRole('dialog', { name: 'Search' }).getByRole('link').first().waitFor();
      expect(await findViolations(page)).toEqual([]);
      await page.keyboard.press('Escape');
      expect(
        await page.evaluate(() => document.documentElement.scrollWidth - innerWidth),
      ).toBeLessThanOrEqual(0);
      await takeScreenshot(page, `${hash.split('/').at(-1)}-${width}-${colorScheme}`);
    }
    expectNoErrors({ page, ...watched });
    await page.close();
  });

  test('axe finds one thing in the client for test requests: the page behind it is a main landmark, too', async () => {
    const { page } = await openClient(service.url, service.key);
    await expect
      .poll(() => findViolations(page), { timeout: AXE_TIMEOUT_MS, interval: 1_000 })
      .toEqual([expect.stringMatching(/^landmark-no-duplicate-main: [^|]*$/)]);
    await page.close();
  });

  async function readSummaries(): Promise<string[]> {
    const { body } = await call('/openapi.json');
    const operations = Object.values<Record<string, { summary: string }>>(body.paths).flatMap((item) =>
      Object.values(item),
    );
    expect(operations.length).toBeGreaterThanOrEqual(4);
    return operations.map(({ summary }) => summary);
  }

  test.each([
    ['', 'call'],
    ['/store', 'call-behind-proxy'],
  ])(
    'a call made with a pasted key goes to the server the page was loaded from, under prefix %j',
    async (prefix, name) => {
      const { body: pet } = await call('/v1/pets', post({ name: `Seen in ${name}`, categoryId: 1 }));
      const origin = prefix === '' ? service.url : proxy.origin;
      const { page, client, ...watched } = await openClient(origin + prefix, service.key);
      const sent = page.waitForRequest((request) => request.url().startsWith(`${origin}${prefix}/v1/pets`));
      await client.getByRole('button', { name: /^Send/ }).first().click();
      await sent;
      await client.getByText('200 OK').waitFor();
      await client.getByText(pet.name).waitFor();
      await takeScreenshot(page, name);
      expectNoErrors({ page, ...watched }, origin);
      await page.close();
    },
  );

  test('code samples leave optional parameters out: no two readers paste the same Idempotency-Key or cursor', async () => {
    const { page } = await openPage(browser.context);
    await page.addInitScript(() => localStorage.setItem('animal-store-language', 'curl'));
    for (const operation of ['orders/GET/store/orders', 'pets/GET/pets', 'pets/POST/pets']) {
      await page.goto(`${service.url}/docs#tag/${operation}`);
      await untilReference(page);
      const section = page.locator(`[id$="tag/${operation}"]`);
      const sample = section.locator('pre').filter({ hasText: 'curl' }).first();
      const text = (await sample.innerText()).replaceAll('\n', ' ');
      expect(text).toContain('Authorization: Bearer');
      expect(text.includes("-d '{")).toBe(operation.includes('POST'));
      expect(text).not.toMatch(/idempotency-key|cursor|limit|\?/i);
    }
    await page.evaluate(() => localStorage.clear());
    await page.close();
  });

  test('optional parameters that the reader fills in are sent', async () => {
    // Scalar takes seconds to render the page, so it is opened once.
    const { page, client } = await openClient(service.url, service.key);
    const fill = async (name: string, value: string) => {
      const row = client.getByRole('row').filter({ hasText: name }).first();
      await row.locator('[contenteditable=true]').last().fill(value);
      // The page applies what was typed after a moment.
      const send = async () => {
        const sent = page.waitForRequest((request) => request.url().startsWith(`${service.url}/v1/`));
        await client.getByRole('button', { name: /^Send/ }).first().click();
        const request = await sent;
        const status = (await request.response())?.status();
        return [status, new URL(request.url()).search || request.headers()['idempotency-key']];
      };
      await expect
        .poll(send, { timeout: 20_000, interval: 500 })
        .toEqual([expect.any(Number), expect.stringContaining(value)]);
      return send();
    };
    expect(await fill('limit', '2')).toEqual([200, '?limit=2']);
    await client.getByRole('button', { name: 'Close Client' }).first().click();
    await openOperation(page, 'post /pets');
    expect(await fill('Idempotency-Key', 'typed')).toEqual([201, 'typed']);
    await page.close();
  });

  test('shows that an invalid key is rejected', async () => {
    const { page, client, origins } = await openClient(service.url, 'as_test_no');
    await client.getByRole('button', { name: /^Send/ }).first().click();
    await client.getByText('401 Unauthorized').waitFor();
    await client.getByText('invalid_api_key').waitFor();
    expect([...origins]).toEqual([service.url]);
    await page.close();
  });

  test('scripts from a configured origin can read the API, those from another origin cannot', async () => {
    const { page } = await openPage(browser.context);
    const read = async (from: string) => {
      await page.goto(from);
      return page.evaluate(
        async ([url, key]) => {
          const headers = { authorization: `Bearer ${key}` };
          return fetch(`${url}/v1/pets`, { headers }).then(
            async (response) => [response.status, response.headers.get('x-ratelimit-limit') !== null],
            () => 'blocked',
          );
        },
        [service.url, service.key],
      );
    };
    expect(await read(shop.origin)).toEqual([200, true]);
    expect(await read(shop.origin.replace('127.0.0.1', 'localhost'))).toBe('blocked');
    await page.close();
  });

  test.each(['light', 'dark'] as const)(
    'the pages of a store without guides are its own, accessible and clean in the %s colour scheme',
    async (colorScheme) => {
      const { url, key, close } = await startBoatyard();
      onTestFinished(close);
      const { page, ...watched } = await openPage(browser.context);
      await page.emulateMedia({ colorScheme });
      await page.goto(`${url}/docs#tag/boats/POST/boats`);
      await untilReference(page);
      expect(await page.title()).toContain('Boatyard Service');
      const sample = page.locator('[id$="tag/boats/POST/boats"] pre').filter({ hasText: 'curl' }).first();
      await expect.poll(() => sample.innerText()).toContain(`'${url}/v1/boats'`);
      expect(await sample.innerText()).toContain('Bearer by_test_…');
      await page.getByPlaceholder('Token').filter({ visible: true }).first().fill(key);
      await expect.poll(() => sample.innerText()).toContain(`Bearer ${key}`);
      await expect.poll(() => findViolations(page), { timeout: AXE_TIMEOUT_MS, interval: 1_000 }).toEqual([]);
      await page.keyboard.press('Control+k');
      await page.getByRole('searchbox').fill('no such word');
      await page.getByText('Nothing found.', { exact: true }).waitFor();
      await page.keyboard.press('Escape');
      await takeScreenshot(page, `boatyard-${colorScheme}`);

      await page.goto(`${url}/docs/key`);
      await page.getByText('Revoke this key').waitFor();
      await page.getByText(`${key.slice(0, 12)}…`, { exact: true }).waitFor();
      expect(await findViolations(page)).toEqual([]);
      expectNoErrors({ page, ...watched }, url);
      await page.close();
    },
  );
});
