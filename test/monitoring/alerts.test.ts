import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { listHeadings } from '../../packages/platform/test/support/markdown.js';

interface Rule {
  readonly alert: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly runbook_url: string };
}

interface RuleTest {
  readonly alert_rule_test: readonly { readonly alertname: string; readonly exp_alerts: readonly object[] }[];
}

const FOLDER = 'docs/monitoring';
const read = (name: string) => parse(readFileSync(`${FOLDER}/${name}`, 'utf8'));
const groups: { rules: (Rule | { readonly record: string })[] }[] = read('alerts.yaml').groups;
const allRules = groups.flatMap(({ rules }) => rules);
const rules = allRules.filter((rule) => 'alert' in rule);
const ruleTests: RuleTest[] = read('alerts.test.yaml').tests;

const readAll = (path: string) =>
  parseAllDocuments(readFileSync(path, 'utf8')).map((document) => document.toJS());

test.each(['kubernetes.yaml', 'kubernetes-keys.yaml'])(
  'the pods of %s have annotations for Prometheus, and a PodMonitor that finds them and their port',
  (file) => {
    const { template } = readAll(`docs/deploy/${file}`).find(({ kind }) => kind === 'Deployment').spec;
    const { name } = readAll(`docs/deploy/${file}`).find(({ kind }) => kind === 'Deployment').metadata;
    const { selector, podMetricsEndpoints } = readAll(`${FOLDER}/pod-monitor.yaml`).find(
      ({ metadata }) => metadata.name === name,
    ).spec;
    expect(template.metadata.labels).toMatchObject(selector.matchLabels);
    const ports = template.spec.containers.flatMap((container: { ports: object[] }) => container.ports);
    expect(ports).toContainEqual({
      name: podMetricsEndpoints[0].port,
      containerPort: Number(template.metadata.annotations['prometheus.io/port']),
    });
  },
);

test.each(rules)('$alert has a test in which it fires, and one in which it does not', ({ alert }) => {
  const cases = ruleTests.flatMap(({ alert_rule_test }) => alert_rule_test);
  const firing = cases
    .filter(({ alertname }) => alertname === alert)
    .map(({ exp_alerts }) => exp_alerts.length > 0);
  expect(firing).toContain(true);
  expect(firing).toContain(false);
});

test.each(rules)(
  '$alert has a severity, a summary and the address of its runbook',
  ({ alert, labels, annotations }) => {
    expect(['critical', 'warning', 'info']).toContain(labels.severity);
    expect(annotations.summary).not.toBe('');
    expect(annotations.runbook_url).toMatch(
      new RegExp(`^https://\\S+/blob/main/docs/runbooks\\.md#${alert.toLowerCase()}$`),
    );
  },
);

test('every rule and every ratio on the dashboard leaves out errors that clients rehearse', () => {
  const metric = /animal_store_http_request_duration_seconds_(?:count|bucket)\{([^}]*)\}/g;
  const selectors = [...JSON.stringify(groups).matchAll(metric)].map(([, labels]) => labels);
  expect(selectors.length).toBeGreaterThan(10);
  for (const labels of selectors) expect(labels).toContain('rehearsed=\\"\\"');
  const panels = [...readFileSync(`${FOLDER}/dashboard.json`, 'utf8').matchAll(metric)].map(
    ([, labels]) => labels,
  );
  for (const labels of panels.filter((each) => each?.includes('status=')))
    expect(labels).toContain('rehearsed=\\"\\"');
});

test('each alert has its section in runbooks.md, in the order of the rules', () => {
  const sections = listHeadings(readFileSync('docs/runbooks.md', 'utf8')).filter(({ level }) => level === 2);
  expect(sections.map(({ anchor }) => anchor)).toEqual(rules.map(({ alert }) => alert.toLowerCase()));
});
