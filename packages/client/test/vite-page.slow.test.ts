import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createServer } from 'vite';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { findBrowser, launchBrowser, openPage } from '../../platform/test/support/browser.js';
import { run } from '../../platform/test/support/process.js';
import { startService } from '../../platform/test/support/test-service.js';
import { type InstalledPackage, installPackage, ROOT } from './installed-package.js';

const browser = findBrowser();

describe.skipIf(browser === undefined)(
  "the README's example in a new Vite page",
  { timeout: 120_000 },
  () => {
    let front: InstalledPackage;

    beforeAll(async () => {
      front = await installPackage();
    }, 180_000);
    afterAll(() => front?.remove());

    /** Opens the page as `vite` serves it, with the address and the key in their places. */
    async function openExample(url: string, key: string) {
      const readme = await readFile(join(ROOT, 'README.md'), 'utf8');
      const [, example = ''] = /```ts\n(import .*?)```/s.exec(readme) ?? [];
      expect(example).toContain("{ baseUrl: 'http://127.0.0.1:3000', apiKey: 'as_test_…' }");
      const root = join(front.project, 'page');
      await mkdir(root, { recursive: true });
      const code = example.replace('http://127.0.0.1:3000', url).replace('as_test_…', key);
      await writeFile(join(root, 'main.ts'), code);
      await writeFile(
        join(root, 'index.html'),
        '<link rel="icon" href="data:,"><script type="module" src="/main.ts"></script>',
      );
      const vite = await createServer({ root, configFile: false, logLevel: 'silent', server: { port: 0 } });
      onTestFinished(() => vite.close());
      await vite.listen();
      const { context, close } = await launchBrowser(browser ?? '');
      onTestFinished(close);
      const { page, errors } = await openPage(context);
      const shown: string[] = [];
      page.on('console', (message) => {
        if (message.type() === 'table') shown.push(message.text());
      });
      await page.goto(vite.resolvedUrls?.local[0] ?? '');
      return { page, errors, shown };
    }

    test('works with a service started with its defaults, and may read every header it needs', async () => {
      const program = run('main', [], { DATA_DIR: join(front.project, '.data'), PORT: '0' });
      onTestFinished(async () => {
        program.child.kill('SIGTERM');
        await program.ended;
      });
      const [, key = '', url = ''] = await program.until(/Bearer (\S+)' '(http:\/\/[^/]+)\//);
      const { page, errors, shown } = await openExample(url, key);
      await expect.poll(() => shown, { timeout: 30_000 }).toHaveLength(1);
      const readable = await page.evaluate(
        async ([address, authorization]) => {
          const response = await fetch(`${address}/v1/pets?limit=1`, { headers: { authorization } });
          return [...response.headers.keys()];
        },
        [url, `Bearer ${key}`] as const,
      );
      expect(readable).toEqual(
        expect.arrayContaining([
          'link',
          'ratelimit',
          'ratelimit-policy',
          'x-ratelimit-reset',
          'x-request-id',
        ]),
      );
      expect(errors).toEqual([]);
    });

    test('says what to set where the service does not allow its origin', async () => {
      const service = await startService();
      onTestFinished(() => service.close());
      const { errors, page } = await openExample(service.url, service.key);
      const hint = new RegExp(`page error: .*CORS_ORIGINS.* ${new URL(page.url()).origin}`);
      await expect.poll(() => errors, { timeout: 30_000 }).toContainEqual(expect.stringMatching(hint));
    });
  },
);
