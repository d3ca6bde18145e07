import { accessSync, constants, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { reportMissing } from '@animal-store/limits/testing';
import type { AxeResults } from 'axe-core';
import { type BrowserContext, chromium, type Page } from 'playwright-core';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];
const ARGUMENTS = [
  // No page lives long enough for what V8's optimising compilers cost: it opens with six tenths of the CPU without them.
  '--js-flags=--no-opt,--no-maglev',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** For every Playwright action: a busy machine takes its time to render a page. */
const TIMEOUT_MS = 60_000;

/** The path of the system's Chromium. Without one, tests are skipped. */
export function findBrowser(): string | undefined {
  const executable = findChromium();
  if (executable === undefined) reportMissing('chromium');
  return executable;
}

/** CHROMIUM if set, otherwise the first of the usual names on the PATH */
function findChromium(): string | undefined {
  const { CHROMIUM, PATH = '' } = process.env;
  if (CHROMIUM) return CHROMIUM;
  const candidates = PATH.split(delimiter).flatMap((folder) => NAMES.map((name) => join(folder, name)));
  return candidates.find(isExecutable);
}

export interface Browser {
  readonly context: BrowserContext;
  close(): Promise<void>;
}

/** A headless browser with an empty profile and without background requests. */
export async function launchBrowser(executablePath: string): Promise<Browser> {
  const profile = await mkdtemp(join(tmpdir(), 'animal-store-browser-'));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath,
    headless: true,
    args: ARGUMENTS,
    viewport: { width: 1440, height: 900 },
  });
  context.setDefaultTimeout(TIMEOUT_MS);
  return {
    context,
    async close() {
      await context.close();
      await rm(profile, { recursive: true, force: true });
    },
  };
}

export interface WatchedPage {
  readonly page: Page;
  /** The origins of all requests so far */
  readonly origins: ReadonlySet<string>;
  /** Everything in the console */
  readonly messages: readonly string[];
  /** Console errors and warnings, uncaught exceptions, failed requests, and violations of the page's policy */
  readonly errors: readonly string[];
}

/** Opens a page and records what goes wrong in it. */
export async function openPage(context: BrowserContext): Promise<WatchedPage> {
  const page = await context.newPage();
  const origins = new Set<string>();
  const errors: string[] = [];
  const messages: string[] = [];
  page.on('request', (request) => {
    if (!/^(?:data|blob):/.test(request.url())) origins.add(new URL(request.url()).origin);
  });
  page.on('requestfailed', (request) => errors.push(`${request.url()}: ${request.failure()?.errorText}`));
  page.on('pageerror', (error) => errors.push(`page error: ${error.message}`));
  page.on('console', (message) => {
    messages.push(message.text());
    if (['error', 'warning'].includes(message.type())) errors.push(`console: ${message.text()}`);
  });
  await page.exposeFunction('reportViolation', (violation: string) => errors.push(violation));
  await page.addInitScript(() =>
    document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
      Reflect.get(window, 'reportViolation')(`policy violated: ${violatedDirective} by ${blockedURI}`),
    ),
  );
  return { page, origins, errors, messages };
}

/** What axe objects to in a page, each with the elements concerned. */
export async function findViolations(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  // Its rule for WCAG 2.2, 2.5.8 is off by default.
  const options = { resultTypes: ['violations'], rules: { 'target-size': { enabled: true } } };
  const { violations } = await page.evaluate<AxeResults>(`axe.run(${JSON.stringify(options)})`);
  return violations.map(
    ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(' | ')}`,
  );
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
