import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { cp, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import {
  createTemporaryFolder,
  type Environment,
  execute,
  type Program,
  runCommand,
  runNode,
} from '@animal-store/platform/testing';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { create, insertSql, list, OTHER_TABLE, TABLE, TEXT } from '#operations-under-test';
import { findBrowser, launchBrowser, openPage } from '../packages/platform/test/support/browser.js';
import { run, runKeys } from './support/programs.js';
import { createTestDatabase } from './support/service.js';

let folder: string;
/** Holds stand-ins for what opens a page on Linux and macOS, which write its address to a file. */
let bin: string;
let opened: string;
const closing: (() => unknown)[] = [];

beforeEach(async () => {
  folder = await createTemporaryFolder();
  bin = join(folder, 'bin');
  opened = join(folder, 'opened');
  await mkdir(bin);
  for (const name of ['xdg-open', 'open'])
    await writeFile(join(bin, name), `#!/bin/sh\necho "$1" > '${opened}'\n`, { mode: 0o755 });
});
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
  await rm(folder, { recursive: true, force: true });
});

/** Runs Studio without npm's PATH, and from a folder that is not the repository. */
async function startStudio(
  environment: Environment = {},
): Promise<{ studio: Program; address: string; databaseUrl: string }> {
  const databaseUrl = await createTestDatabase();
  const options = { DATABASE_URL: databaseUrl, PATH: `${bin}:/usr/bin:/bin`, CI: '', ...environment };
  const studio = run('cli', ['studio'], options, folder);
  closing.push(() => {
    studio.child.kill('SIGTERM');
    return studio.ended;
  });
  const [address] = await studio.until(/http:\/\/localhost:\d+\S*/);
  return { studio, address, databaseUrl };
}

test('Studio starts without npm and from any folder, and exits with 0 on SIGTERM', async () => {
  const { studio, address } = await startStudio();
  const page = await fetch(address);
  expect(await page.text()).toContain('/studio.js');
  studio.child.kill('SIGTERM');
  expect(await studio.ended).toBe(0);
});

/** Resolves once nothing answers at an address. */
const untilClosed = (address: string) =>
  expect
    .poll(() =>
      fetch(address).then(
        () => 'open',
        () => 'closed',
      ),
    )
    .toBe('closed');

test('npm run studio ends on SIGTERM, and leaves no page open', async () => {
  const environment = {
    DATABASE_URL: await createTestDatabase(),
    CI: '',
    PATH: `${bin}:${process.env.PATH}`,
  };
  const npm = runCommand('npm', ['run', '--silent', 'studio'], environment);
  const [address] = await npm.until(/http:\/\/localhost:\d+\S*/);
  // A page keeps its connection open.
  expect((await fetch(address)).status).toBe(200);
  npm.child.kill('SIGTERM');
  await npm.ended;
  await untilClosed(address);
});

test('Studio ends with the command that started it, even if that is killed', async () => {
  const { studio, address } = await startStudio();
  studio.child.kill('SIGKILL');
  await untilClosed(address);
});

test('a port in use is one line', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  closing.push(() => server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const environment = { DATABASE_URL: await createTestDatabase() };
  const studio = run('cli', ['studio', '--port', String(port)], environment, folder);
  expect([await studio.ended, studio.output()]).toEqual([
    1,
    `Port ${port} is in use: choose another with --port, or leave it out.\n`,
  ]);
});

test('no column that the second address pins is a hash, which Studio cannot show', async () => {
  const { studio, databaseUrl } = await startStudio();
  const [, pinned = ''] = await studio.until(/table=api_keys&pin=(\S+)/);
  const types = await execute<{ name: string; type: string }>(
    databaseUrl,
    "SELECT column_name AS name, data_type AS type FROM information_schema.columns WHERE table_name = 'api_keys'",
  );
  const typeOf = new Map(types.map(({ name, type }) => [name, type]));
  for (const column of pinned.split(','))
    expect(typeOf.get(column), column).toMatch(/^(?:text|USER-DEFINED)$/);
});

test.each([
  [['--port', '0'], /whole number from 1 to 65535/],
  [['--nonsense'], /unknown option/],
])('studio %j is a usage error', async (args, message) => {
  const studio = run('cli', ['studio', ...args], {}, folder);
  expect([await studio.ended, studio.output()]).toEqual([2, expect.stringMatching(message)]);
});

test('the page is opened with the program of the desktop', async () => {
  const { address } = await startStudio();
  await expect.poll(() => readFile(opened, 'utf8').catch(() => '')).toBe(`${address}\n`);
});

test('without the development dependencies, studio says in one line what to install', async () => {
  const manifests = ['.', ...['platform', 'http-server', 'limits'].map((name) => `packages/${name}`)];
  const names = manifests.flatMap((path) =>
    Object.keys(JSON.parse(readFileSync(`${path}/package.json`, 'utf8')).dependencies),
  );
  for (const part of ['dist', 'prisma', 'scripts', 'package.json'])
    await cp(part, join(folder, part), { recursive: true });
  for (const name of new Set(names.filter((each) => !each.startsWith('@animal-store/')))) {
    const installed = join(folder, 'node_modules', name);
    await mkdir(join(installed, '..'), { recursive: true });
    await symlink(join(process.cwd(), 'node_modules', name), installed);
  }
  const environment = { DATABASE_URL: await createTestDatabase() };
  const studio = runNode([join(folder, 'dist/cli.js'), 'studio'], environment, folder);
  expect(await studio.ended).toBe(1);
  expect(studio.output()).toMatch(/^Prisma Studio is not installed: .*"npm ci".*\n$/);
});

const executable = findBrowser();

/** Records the processes that a process starts and the names that it looks up, in its children too. */
const RECORDER = `
import { appendFileSync } from 'node:fs';
import { subscribe } from 'node:diagnostics_channel';
import dns from 'node:dns';
const record = (line) => appendFileSync(process.env.RECORD, line + '\\n');
const { lookup } = dns;
dns.lookup = (name, ...rest) => { record('looks up ' + name); return lookup(name, ...rest); };
subscribe('child_process', ({ process: child }) => child.once('spawn', () => record('starts ' + child.spawnargs.join(' '))));
`;

describe.runIf(executable)('in a browser', () => {
  test('Studio opens on the main table, and neither its page nor its process contacts any other host', async () => {
    const recorder = join(folder, 'recorder.mjs');
    await writeFile(recorder, RECORDER);
    const record = join(folder, 'record');
    const { address } = await startStudio({
      NODE_OPTIONS: `--import=${pathToFileURL(recorder)}`,
      RECORD: record,
    });
    const browser = await launchBrowser(executable ?? '');
    closing.push(() => browser.close());
    const { page, origins, errors } = await openPage(browser.context);
    const launched = page.waitForResponse(
      (response) => /studio_launched/.test(response.request().postData() ?? '') && response.ok(),
    );
    await page.goto(address);
    await page.getByText(TEXT, { exact: true }).first().waitFor();
    await launched;
    for (const view of ['Visualizer', 'Console', 'SQL', OTHER_TABLE, 'api_keys'])
      await page.getByRole('link', { name: view, exact: true }).click();
    await page.getByText('banned_until').waitFor();
    expect([...origins]).toEqual([new URL(address).origin]);
    // The policy that stops the page's report to its maker stops nothing else.
    const violations = errors.filter((error) => error.startsWith('policy violated'));
    expect(violations.filter((violation) => !violation.includes('checkpoint.prisma.io'))).toEqual([]);
    const lines = (await readFile(record, 'utf8')).trim().split('\n');
    expect(lines.filter((line) => line !== 'looks up 127.0.0.1')).toEqual([
      expect.stringMatching(/^starts .*prisma\/build\/index\.js studio/),
      expect.stringMatching(/^starts .*open http:\/\/localhost:/),
    ]);
  });

  test("the store's other tables have addresses, and that of the keys shows no hash at first", async () => {
    const { studio, databaseUrl } = await startStudio();
    await runKeys({ DATABASE_URL: databaseUrl }, 'create', '--name', 'of the shop', '--plan', 'free');
    const [, other = ''] = await studio.until(new RegExp(`The table ${OTHER_TABLE}: (\\S+)`));
    const [, keys = ''] = await studio.until(/API keys, their names first: (\S+)/);
    const browser = await launchBrowser(executable ?? '');
    closing.push(() => browser.close());
    const { page } = await openPage(browser.context);
    await page.setViewportSize({ width: 1_440, height: 900 });
    await page.goto(keys);
    await page.getByText('of the shop', { exact: true }).waitFor();
    // A heading is the column's name with its type behind it.
    const heading = (column: string) => page.locator('th', { hasText: new RegExp(`^${column}(?!_)`) });
    const leftOf = async (column: string) => (await heading(column).boundingBox())?.x ?? 0;
    for (const column of ['name', 'owner', 'hint', 'plan']) expect(await leftOf(column)).toBeLessThan(1_440);
    for (const column of ['hash', 'previous_hash']) expect(await leftOf(column)).toBeGreaterThan(1_440);
    await page.goto('about:blank');
    await page.goto(other);
    const columns = await execute<{ column_name: string }>(
      databaseUrl,
      `SELECT column_name FROM information_schema.columns WHERE table_name = '${OTHER_TABLE}'`,
    );
    for (const { column_name: column } of columns) await heading(column).waitFor();
  });

  test('the history of keys has an address that shows the newest change first', async () => {
    const { studio, databaseUrl } = await startStudio();
    const [, history = ''] = await studio.until(/The history of keys, newest first: (\S+)/);
    for (const days of [2, 5, 1, 4, 3])
      await execute(
        databaseUrl,
        `INSERT INTO api_key_history
           (api_key_id, changed_at, session_role, active_role, application_name, column_name, new_value)
         VALUES (gen_random_uuid(), now() - interval '${days} days', 'x', 'x', 'x', 'name', 'changed ${days} days ago')`,
      );
    const browser = await launchBrowser(executable ?? '');
    closing.push(() => browser.close());
    const { page } = await openPage(browser.context);
    await page.setViewportSize({ width: 3_800, height: 900 });
    await page.goto(history);
    const changes = page.getByText(/^changed \d days ago$/);
    await expect
      .poll(() => changes.allTextContents())
      .toEqual([1, 2, 3, 4, 5].map((days) => `changed ${days} days ago`));
  });

  test('Studio edits the scopes of a key as a JSON list', { timeout: 60_000 }, async () => {
    const { address, databaseUrl } = await startStudio();
    await runKeys({ DATABASE_URL: databaseUrl }, 'create', '--name', 'x', '--plan', 'free');
    const browser = await launchBrowser(executable ?? '');
    closing.push(() => browser.close());
    const { page } = await openPage(browser.context);
    // Columns outside the window are not rendered.
    await page.setViewportSize({ width: 3_800, height: 900 });
    await page.goto(address);
    await page.getByRole('link', { name: 'api_keys', exact: true }).click();
    await page.getByText(create.scope).dblclick();
    await page.locator('textarea:focus').fill(`["${list.scope}"]`);
    await page.keyboard.press('Control+Enter');
    await page.getByRole('button', { name: 'Save 1 row' }).click();
    await page.getByRole('button', { name: 'yes, write to db' }).click();
    const scopes = async () => (await runKeys({ DATABASE_URL: databaseUrl }, 'list'))[0].scopes;
    await expect.poll(scopes, { timeout: 15_000 }).toEqual([list.scope]);
    const history = await runKeys({ DATABASE_URL: databaseUrl }, 'history');
    expect(history.at(-1)).toMatchObject({
      column: 'scopes',
      newValue: `["${list.scope}"]`,
      applicationName: expect.stringContaining('animal-store studio by '),
    });
  });

  test('what a constraint refuses shows which one it is', { timeout: 60_000 }, async () => {
    const { address, databaseUrl } = await startStudio();
    await execute(databaseUrl, insertSql("'Constrained'"));
    const browser = await launchBrowser(executable ?? '');
    closing.push(() => browser.close());
    const { page } = await openPage(browser.context);
    await page.goto(address);
    await page.getByText('Constrained', { exact: true }).dblclick();
    await page.locator('textarea:focus, input:focus').fill('   ');
    await page.keyboard.press('Control+Enter');
    await page.getByRole('button', { name: 'Save 1 row' }).click();
    await page.getByRole('button', { name: 'yes, write to db' }).click();
    await page.getByText('operation failed').waitFor();
    await page.getByRole('link', { name: 'Console', exact: true }).first().click();
    await page.getByText(`violates check constraint "${TABLE}_`).first().waitFor();
  });
});
