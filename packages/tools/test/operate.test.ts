import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { deriveOperations, writeOperations } from '../src/operate.js';
import { createProject, load, write } from './support.js';

const DEFAULTS = { folder: 'docs', runbooks: 'docs/runbooks.md' };
/** The packages are this repository's, whose page has the platform's runbooks. */
const PACKAGES = /@animal-store\/platform|https:\/\/git\.example\.org\/\S+/g;

/** The store of a project whose names a file has to quote */
async function createNamed() {
  const { definition } = await load(await createProject());
  const names = { name: 'north-pier', title: 'The "Pier" at 50 %' };
  return { ...definition, identity: { ...definition.identity, ...names } };
}

/** Where the first alert of a store leads */
const linkOf = (...args: Parameters<typeof deriveOperations>) =>
  /runbook_url: (\S+)/.exec(deriveOperations(...args)['docs/monitoring/alerts.yaml'] ?? '')?.[1];

test('every file has the names of the store, quoted where that is needed, and none of another', async () => {
  const files = deriveOperations(await createNamed(), DEFAULTS);
  for (const [path, text] of Object.entries(files))
    expect([
      path,
      (path + text).replaceAll(PACKAGES, '').match(/my[-_ ]?(?:store|metrics|version|plan)|animal/gi),
    ]).toEqual([path, null]);
  const textOf = (path: string) => files[path] ?? expect.unreachable(path);
  expect(JSON.parse(textOf('docs/monitoring/dashboard.json')).title).toBe('The "Pier" at 50 %');
  expect(textOf('docs/deploy/north-pier@.service')).toContain('Description=The "Pier" at 50 %% on port %i\n');
  expect(textOf('Dockerfile')).toContain('image.title="The \\"Pier\\" at 50 %"');
  expect(textOf('docs/deploy/roles.sql')).toContain('CREATE ROLE north_pier LOGIN');
  expect(textOf('docs/deploy/kubernetes-migrate.yaml')).toContain('migrate, --grant-to, north_pier]');
  expect(textOf('docs/deploy/kubernetes.yaml')).toContain('image: registry.example.org/north-pier:1.0.0\n');
  expect(textOf('docs/monitoring/alerts.yaml')).toMatch(
    /alert: NorthPierDatabaseNotReady\n +expr: min by \(job, namespace, instance\) \(harbour_database_ready\)/,
  );
  expect(textOf('compose.yaml')).toContain('--plan trial ');
});

test('the PrometheusRule has the rules of alerts.yaml, one level deeper', async () => {
  const files = deriveOperations(await createNamed(), DEFAULTS);
  const [, rules] = files['docs/monitoring/alerts.yaml']?.split(/^(?=groups:)/m) ?? [];
  const [, copy] = files['docs/monitoring/prometheus-rule.yaml']?.split(/^(?= {2}groups:)/m) ?? [];
  expect(copy?.replaceAll(/^ {2}/gm, '')).toBe(rules);
});

test('an alert leads to an address: that of the runbooks of the store, or else of the installed platform', async () => {
  const folder = await createProject();
  const { definition } = await load(folder);
  const platform =
    /^https:\/\/git\.example\.org\/\S+\/blob\/v\d+\.\d+\.\d+\/packages\/platform\/docs\/runbooks\.md#instancedown$/;
  expect(linkOf(definition, DEFAULTS)).toMatch(platform);
  const wiki = 'https://wiki.example.org/harbour';
  expect(linkOf(definition, { ...DEFAULTS, runbooks: wiki })).toBe(`${wiki}#harbourinstancedown`);

  await write(folder, { 'docs/runbooks.md': '# Runbooks' });
  expect(linkOf(definition, DEFAULTS)).toMatch(platform);
  const manifest = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
  const linkFrom = async (repository: unknown) => {
    await write(folder, { 'package.json': JSON.stringify({ ...manifest, repository }) });
    return linkOf(definition, DEFAULTS);
  };
  const address = 'https://git.example.com/yard/harbour';
  for (const repository of [{ type: 'git', url: `git+${address}.git` }, `git+${address}.git`, address])
    expect(await linkFrom(repository)).toBe(`${address}/blob/main/docs/runbooks.md#harbourinstancedown`);
  expect(await linkFrom('git@git.example.com:yard/harbour')).toMatch(platform);
});

test('comments name the documents that the store has, else those that it has installed, and files where they are', async () => {
  const folder = await createProject();
  const { definition } = await load(folder);
  const installed = 'node_modules/@animal-store/platform/docs/deploy.md';
  const textOf = (path: string) =>
    deriveOperations(definition, { ...DEFAULTS, folder: 'ops' })[path] ?? expect.unreachable(path);
  expect(textOf('ops/deploy/kubernetes.yaml')).toContain(`ops/deploy/kubernetes.yaml, after`);
  expect(textOf('compose.yaml')).toContain('./ops/deploy/roles.sql:/roles.sql:ro');
  expect(textOf('compose.yaml')).toContain(` ${installed} says`);
  // Grafana shows it to somebody with a browser.
  expect(textOf('ops/monitoring/dashboard.json')).toMatch(
    /dependencies\. https:\S+\/packages\/platform\/docs\/operations\.md explains/,
  );
  await write(folder, { 'docs/deploy.md': '# Deploying' });
  expect(textOf('compose.yaml')).toContain('# docs/deploy.md says');
});

test('what is missing or different is written, but for a Dockerfile that the store has made its own', async () => {
  const folder = await createProject();
  const { definition } = await load(folder);
  const run = () => writeOperations(definition, DEFAULTS);
  expect(run()).toEqual(expect.arrayContaining(['wrote Dockerfile', 'wrote docs/deploy/harbour@.service']));
  expect(run()).toEqual([]);
  const dockerfile = await readFile(join(folder, 'Dockerfile'), 'utf8');
  await write(folder, { 'docs/deploy/roles.sql': '', Dockerfile: `${dockerfile}# More\n` });
  expect(run()).toEqual(['wrote Dockerfile', 'wrote docs/deploy/roles.sql']);
  await write(folder, { Dockerfile: dockerfile.replace(/.*\n/, ''), '.dockerignore': '*' });
  expect(run()).toEqual([]);
});
