import { execFileSync } from 'node:child_process';
import { copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createTemporaryFolder } from '@animal-store/platform/testing';
import { expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { hasPromtool } from '../../packages/platform/test/support/prometheus.js';
import { filesOf, STORES } from '../support/operators-files.js';

const FOLDER = 'docs/monitoring';
const TIMEOUT_MS = 120_000;
const read = (name: string) => parse(readFileSync(`${FOLDER}/${name}`, 'utf8'));
const groups: { rules: object[] }[] = read('alerts.yaml').groups;
const allRules = groups.flatMap(({ rules }) => rules);
const ruleTests: object[] = read('alerts.test.yaml').tests;
const testWithPromtool = test.skipIf(!hasPromtool());
const promtool = (cwd: string, ...args: string[]) =>
  execFileSync('promtool', args, { cwd, encoding: 'utf8' });

testWithPromtool.for(STORES)(
  'promtool accepts the alert rules of $identity.name, and they fire when their tests expect it',
  { timeout: TIMEOUT_MS },
  async (store) => {
    const folder = await createTemporaryFolder();
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const files = filesOf(store);
    for (const name of ['alerts.yaml', 'alerts.test.yaml'])
      writeFileSync(`${folder}/${name}`, files[`${FOLDER}/${name}`] ?? '');
    expect(promtool(folder, 'check', 'rules', '--lint-fatal', 'alerts.yaml')).toContain(
      `SUCCESS: ${allRules.length} rules`,
    );
    expect(promtool(folder, 'test', 'rules', 'alerts.test.yaml')).toContain('SUCCESS');
  },
);

/** The labels that targets get beside `instance`, and those of them that alerts keep. */
const DEPLOYMENTS = [
  { name: 'Compose', job: 'docker', kept: {}, dropped: { container: 'store-1' } },
  {
    name: 'Kubernetes with annotations',
    job: 'kubernetes-pods',
    kept: { namespace: 'shop' },
    dropped: { pod: 'animal-store-7d9f-x2x', node: 'n1', app_kubernetes_io_name: 'animal-store' },
  },
  {
    name: 'a PodMonitor',
    job: 'shop/animal-store',
    kept: { namespace: 'shop' },
    dropped: { pod: 'animal-store-7d9f-x2x', container: 'animal-store', endpoint: 'probes' },
  },
];

testWithPromtool.for(DEPLOYMENTS)(
  'the alerts fire with the labels of $name as they do with those of a static job',
  { timeout: TIMEOUT_MS },
  async ({ job, kept, dropped }) => {
    const list = (labels: object, separator: string) =>
      Object.entries({ job, ...labels })
        .map(([label, value]) => `${label}${separator}"${value}"`)
        .join(', ');
    const tests = readFileSync(`${FOLDER}/alerts.test.yaml`, 'utf8')
      .replaceAll('job="animal-store"', list({ ...kept, ...dropped }, '='))
      .replaceAll('job: animal-store', list(kept, ': '))
      .replaceAll(/(summary: .*)animal-store/g, `$1${job}`);
    expect(tests.split(job).length).toBeGreaterThan(ruleTests.length);
    const folder = await createTemporaryFolder();
    try {
      copyFileSync(`${FOLDER}/alerts.yaml`, `${folder}/alerts.yaml`);
      writeFileSync(`${folder}/alerts.test.yaml`, tests);
      expect(promtool(folder, 'test', 'rules', 'alerts.test.yaml')).toContain('SUCCESS');
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
);
