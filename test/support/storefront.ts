import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { type InlineConfig, preview, build as viteBuild } from 'vite';
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest';
import { storefrontConfig } from '../../examples/storefront/vite.config.js';
import {
  type Browser,
  findViolations,
  launchBrowser,
  openPage,
  type WatchedPage,
} from '../../packages/platform/test/support/browser.js';
import { startService, type TestService } from './service.js';

const SIZES = [
  { width: 390, height: 844 },
  { width: 1440, height: 900 },
] as const;
const SCHEMES = ['light', 'dark'] as const;
/** States that involve the form, which narrow pages hide behind a button */
const FORM_STATES = ['saving', 'added', 'field-errors', 'limited-save', 'back'];

/** The names that the catalogue's categories have on a first start */
const [SAMPLE_CATEGORIES = expect.unreachable()] =
  /^INSERT INTO "categories".*?;$/ms.exec(readFileSync('prisma/seed.sql', 'utf8')) ?? [];

export interface Visit extends WatchedPage {
  readonly service: TestService;
  readonly url: string;
}

interface VisitOptions {
  readonly service?: TestService;
  /** By default the service's key; null for none */
  readonly key?: string | null;
  /** How many animals to add to the catalogue first */
  readonly pets?: number;
  /** Runs before the page is opened. */
  readonly prepare?: (page: Page) => Promise<unknown>;
}

/** The built storefront, and a browser. */
interface Storefront {
  readonly browser: Browser;
  /** The folder of the build */
  readonly outDir: string;
  /** Opens the address that `npm run storefront` would print, until the end of the test. */
  visit(options?: VisitOptions): Promise<Visit>;
  /** Takes screenshots at each width in both colour schemes, and expects that axe finds no violation. */
  inspect(page: Page, name: string): Promise<void>;
  close(): Promise<void>;
}

/** Builds the storefront and opens a browser before the tests of a `describe`, and closes both after them. */
export function setUpStorefront(executable: string | undefined): Omit<Storefront, 'close'> {
  let storefront: Storefront;
  beforeAll(async () => {
    storefront = await openStorefront(executable);
  });
  afterAll(() => storefront?.close());
  return {
    get browser() {
      return storefront.browser;
    },
    get outDir() {
      return storefront.outDir;
    },
    visit: (options) => storefront.visit(options),
    inspect: (page, name) => storefront.inspect(page, name),
  };
}

async function openStorefront(executable: string | undefined): Promise<Storefront> {
  const outDir = await mkdtemp(join(tmpdir(), 'animal-store-storefront-'));
  const screenshots = await mkdtemp(join(tmpdir(), 'animal-store-storefront-screenshots-'));
  console.log(`Screenshots: ${screenshots}`);
  await viteBuild(createViteConfig('http://127.0.0.1:9', outDir));
  const browser = await launchBrowser(executable ?? '');
  return {
    browser,
    outDir,
    visit: (options) => visit(browser, outDir, options),
    inspect: (page, name) => inspect(page, name, screenshots),
    async close() {
      await browser.close();
      await rm(outDir, { recursive: true, force: true });
    },
  };
}

function createViteConfig(serviceUrl: string, outDir: string): InlineConfig {
  const config = storefrontConfig(serviceUrl);
  return {
    ...config,
    configFile: false,
    logLevel: 'silent',
    build: { outDir, emptyOutDir: true },
    preview: { ...config.preview, port: 0 },
  };
}

async function visit(browser: Browser, outDir: string, options: VisitOptions = {}): Promise<Visit> {
  const { service = await startServiceForTest(), key = service.key, pets = 0, prepare } = options;
  await service.database.pool.query(SAMPLE_CATEGORIES);
  if (pets > 0) await addPets(service, pets);
  const server = await preview(createViteConfig(service.url, outDir));
  onTestFinished(() => server.close());
  const url = server.resolvedUrls?.local[0] ?? '';
  const watched = await openPage(browser.context);
  onTestFinished(() => watched.page.close());
  await prepare?.(watched.page);
  await watched.page.goto(key === null ? url : `${url}#key=${key}`);
  return { ...watched, service, url };
}

async function startServiceForTest(): Promise<TestService> {
  const service = await startService();
  onTestFinished(() => service.close());
  return service;
}

/** Animals that rotate through all categories and statuses, and the names of the categories. */
export async function addPets({ database }: TestService, count: number): Promise<void> {
  await database.pool.query(SAMPLE_CATEGORIES);
  await database.pool.query(
    `INSERT INTO pets (name, category_id, status)
     SELECT 'Animal ' || n || ', of the test', 1 + n % 6, (ARRAY['available', 'pending', 'sold'])[1 + n % 3]::pet_status
     FROM generate_series(1, $1) AS n`,
    [count],
  );
}

async function inspect(page: Page, name: string, folder: string): Promise<void> {
  const toggle = page.getByRole('button', { name: 'Add an animal' });
  for (const size of SIZES) {
    await page.setViewportSize(size);
    if (FORM_STATES.includes(name) && (await toggle.isVisible())) await toggle.click();
    for (const colorScheme of SCHEMES) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      const state = `${name}-${size.width}-${colorScheme}`;
      await page.screenshot({ path: join(folder, `${state}.png`) });
      expect([state, await findViolations(page)]).toEqual([state, []]);
    }
  }
  for (const width of [320, 640, 1440]) {
    await page.setViewportSize({ width, height: 900 });
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    expect([name, width, overflow <= 0]).toEqual([name, width, true]);
  }
}
