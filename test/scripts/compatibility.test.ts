import { spawnSync } from 'node:child_process';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { MIN_NOTICE_MONTHS as CHECKED_MONTHS, RULES } from '@animal-store/compatibility';
import { createTemporaryFolder } from '@animal-store/platform/testing';
import { expect, onTestFinished, test } from 'vitest';
import { deprecationHeaders, MIN_NOTICE_MONTHS } from '../../packages/platform/src/contract/deprecation.js';
import { IDENTITY } from '../../src/definition/identity.js';
import { create, list } from '../support/operations-under-test.js';
import { startService } from '../support/service.js';

const readJson = async (path: string) => JSON.parse(await readFile(path, 'utf8'));

/** The versions of the interface, oldest first. */
async function listReleases(): Promise<string[]> {
  const files = await readdir('docs/releases');
  return files
    .filter((file) => file.endsWith('.json'))
    .map((file) => file.replace(/\.json$/, ''))
    .sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
}

interface Paths {
  readonly paths: Readonly<Record<string, { readonly get?: Readonly<Record<string, unknown>> }>>;
}

/** The paths whose GET has a value in one of its members. */
const findGets = ({ paths }: Paths, member: string, value: unknown) =>
  Object.entries(paths).flatMap(([path, { get }]) => (get?.[member] === value ? [path] : []));

/** Runs what `npm run verify` compares documents with on that of the last release, before and after it has lost an answer. */
async function check(lost?: { path: string; method: string; status: number }) {
  const released = `docs/releases/${(await listReleases()).at(-1)}.json`;
  const document = await readJson(released);
  if (lost) delete document.paths[lost.path][lost.method].responses[lost.status];
  const temporary = await createTemporaryFolder();
  onTestFinished(() => rm(temporary, { recursive: true }));
  const path = join(temporary, 'openapi.json');
  await writeFile(path, JSON.stringify(document));
  const command = ['--import', 'tsx', 'packages/compatibility/src/command.ts', released, path];
  return spawnSync(process.execPath, command, { encoding: 'utf8' });
}

test('npm run verify fails for a breaking change, and quotes the rule', async () => {
  const { status, stderr } = await check({ path: create.documentPath, method: 'post', status: 413 });
  expect(stderr).toBe(
    `Breaking: POST ${create.path}: 413 is gone\n  ${RULES['statuses-kept']} (statuses-kept)\n`,
  );
  expect(status).toBe(1);
});

const released = await readJson(`docs/releases/${(await listReleases()).at(-1)}.json`);
/** Those of the last release, as far as the store has such */
const [experimental] = findGets(released, 'x-stability', 'experimental');

test.skipIf(experimental === undefined)(
  'npm run verify lists the changes of an experimental operation, and passes',
  async () => {
    const { status, stdout } = await check({ path: `${experimental}`, method: 'get', status: 429 });
    expect(stdout).toContain(`Experimental: GET /v1${experimental}: 429 is gone\n`);
    expect(status).toBe(0);
  },
);

test('npm run verify passes without a change, and runs this check', async () => {
  expect(await check()).toMatchObject({ status: 0, stderr: '' });
  expect(await readFile('scripts/check.js', 'utf8')).toContain("['scripts/tools.js', 'check']");
});

/** Part 9 of the interface specification, word for word */
const SPECIFIED = 'The interface description carries the version number 1.0.0.';

test('the interface has the version that its specification states, or one that grew from it by a release', async () => {
  const [, specified] = /(\d+\.\d+\.\d+)\.$/.exec(SPECIFIED) ?? [];
  const versions = await listReleases();
  expect(versions[0]).toBe(specified);
  expect(versions.at(-1)).toBe(IDENTITY.interfaceVersion);
  for (const version of versions) {
    expect(version.split('.')[0]).toBe(specified?.split('.')[0]);
    expect((await readJson(`docs/releases/${version}.json`)).info.version).toBe(version);
  }
});

test('the metrics have the version in package.json, the document that of the interface', async () => {
  const { version, devDependencies } = await readJson('package.json');
  const service = await startService();
  const read = async (path: string) => (await fetch(service.url + path)).text();
  const [document, metrics] = [JSON.parse(await read('/openapi.json')), await read('/metrics')];
  await service.close();
  expect(document.info.version).toBe(IDENTITY.interfaceVersion);
  expect(metrics).toContain(`\nanimal_store_build_info{version="${version}",`);
  // Of this folder: a release would otherwise look for the last client in the registry.
  expect(devDependencies['@animal-store/client']).toBe('file:packages/client');
});

test('the guide has the rules that the check applies', async () => {
  const guide = await readFile('docs/guides/compatibility.md', 'utf8');
  const text = guide.replaceAll(/\s+/g, ' ');
  for (const sentence of Object.values(RULES)) expect(text).toContain(sentence);
  expect(text).toContain(`at least ${MIN_NOTICE_MONTHS} months`);
  expect(CHECKED_MONTHS).toBe(MIN_NOTICE_MONTHS);
});

const document = await readJson('docs/openapi.json');
const [deprecated] = findGets(document, 'deprecated', true);

test.skipIf(deprecated === undefined)(
  "the guide's example has the headers of the operation that is deprecated",
  async () => {
    const guide = await readFile('docs/guides/compatibility.md', 'utf8');
    const { 'x-deprecated-since': since, 'x-sunset': sunset } = document.paths[deprecated ?? ''].get;
    const deprecation = { since: new Date(since), removal: new Date(sunset), successor: list.documentPath };
    const headers = deprecationHeaders(deprecation, 'https://store.example.org', 0);
    for (const value of Object.values(headers)) expect(guide).toContain(`: ${value}\n`);
  },
);
