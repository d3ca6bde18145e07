import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse } from 'yaml';

interface Job {
  readonly needs?: readonly string[];
  readonly permissions?: Readonly<Record<string, string>>;
  readonly uses?: string;
  readonly strategy?: { readonly matrix: Readonly<Record<string, readonly string[]>> };
  readonly steps?: readonly { readonly uses?: string; readonly run?: string }[];
}

interface Workflow {
  readonly permissions: Readonly<Record<string, string>>;
  readonly jobs: Readonly<Record<string, Job>>;
}

const FOLDER = '.github/workflows';
const names = readdirSync(FOLDER);
const texts = names.map((name) => readFileSync(`${FOLDER}/${name}`, 'utf8'));
const read = (name: string): Workflow => parse(readFileSync(`${FOLDER}/${name}`, 'utf8'));

test('actions are pinned by digest, with their version beside it for Renovate', () => {
  const used = texts.flatMap((text) => [...text.matchAll(/uses: (.+)$/gm)].map(([, action = '']) => action));
  const others = used.filter((action) => !action.startsWith('./.github/workflows/'));
  expect(others.length).toBeGreaterThan(5);
  for (const action of others) expect(action).toMatch(/^[\w./-]+@[\da-f]{40} # v\d+\.\d+\.\d+$/);
  // One digest for each action, or one of them would be forgotten.
  const actions = new Set(others.map((action) => action.split('@')[0]));
  expect(new Set(others).size).toBe(actions.size);
});

test('a workflow may read the code at most, and write only in the jobs that say so', () => {
  for (const name of names) {
    expect(Object.entries(read(name).permissions), name).toEqual(
      name === 'ci.yml' ? [['contents', 'read']] : [],
    );
  }
  const writing = Object.entries(read('release.yml').jobs).filter(
    ([, { permissions = {} }]) => permissions.contents === 'write',
  );
  expect(writing.map(([name]) => name)).toEqual(['publish']);
});

test('nothing is published before every check and the scan of advisories have passed', () => {
  const { jobs } = read('release.yml');
  expect(jobs.publish?.needs).toEqual(['build', 'attest']);
  const { needs = [] } = jobs.build ?? {};
  expect(needs.map((name) => jobs[name]?.uses).sort()).toEqual([
    './.github/workflows/advisories.yml',
    './.github/workflows/ci.yml',
  ]);
});

test('what can attest runs pinned actions alone, and what runs the code of packages can attest nothing', () => {
  const jobs = names.flatMap((name) => Object.entries(read(name).jobs));
  const withIdentity = jobs.filter(([, { permissions = {} }]) => permissions['id-token'] !== undefined);
  expect(withIdentity.map(([name]) => name)).toEqual(['attest', 'npm']);
  const attesting = withIdentity.filter(([name]) => name === 'attest');
  for (const [, { permissions, needs, steps = [] }] of attesting) {
    expect(permissions?.attestations).toBe('write');
    expect(needs).toEqual(['build']);
    expect(steps.filter(({ uses }) => uses?.startsWith('actions/attest@'))).toHaveLength(3);
    for (const { run, uses } of steps)
      expect([run, uses]).toEqual([undefined, expect.stringMatching(/@[\da-f]{40}$/)]);
  }
});

test('packages go to npm once the owner says so, after the release, by a job that runs no code of a package', () => {
  const { npm } = read('release.yml').jobs;
  expect(npm).toMatchObject({ needs: ['publish'], environment: 'npm', if: "vars.PUBLISH_TO_NPM == 'true'" });
  expect(npm?.permissions).toEqual({ 'id-token': 'write' });
  const commands = npm?.steps?.flatMap(({ run }) => run ?? []) ?? [];
  expect(commands).toHaveLength(1);
  expect(commands[0]).toMatch(/^npm publish --provenance --access public --ignore-scripts \S+\.tgz$/);
  const packed = readdirSync('packages').filter(
    (name) => JSON.parse(readFileSync(`packages/${name}/package.json`, 'utf8')).files !== undefined,
  );
  expect(npm?.strategy?.matrix.package).toEqual(packed);
});

test('new versions cool down before Renovate proposes them, and each held back below a major stays there', () => {
  const { minimumReleaseAge, packageRules } = JSON.parse(readFileSync('renovate.json', 'utf8'));
  expect(minimumReleaseAge).toMatch(/^\d+ days$/);
  const rule = packageRules.find(({ groupName }: { groupName?: string }) => groupName === 'Prisma');
  expect(rule.allowedVersions).toBe('<8');
});
