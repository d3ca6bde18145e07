import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { hasPromtool } from '../support/prometheus.js';

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
const rules: Rule[] = read('alerts.yaml').groups.flatMap(({ rules }: { rules: Rule[] }) => rules);
const ruleTests: RuleTest[] = read('alerts.test.yaml').tests;
const testWithPromtool = test.skipIf(!hasPromtool());

testWithPromtool('promtool accepts the alert rules, and they fire when their tests expect it', () => {
  const promtool = (...args: string[]) => execFileSync('promtool', args, { cwd: FOLDER, encoding: 'utf8' });
  expect(promtool('check', 'rules', '--lint-fatal', 'alerts.yaml')).toContain(
    `SUCCESS: ${rules.length} rules`,
  );
  expect(promtool('test', 'rules', 'alerts.test.yaml')).toContain('SUCCESS');
});

test.each(rules)('$alert has a test in which it fires, and one in which it does not', ({ alert }) => {
  const cases = ruleTests.flatMap(({ alert_rule_test }) => alert_rule_test);
  const firing = cases
    .filter(({ alertname }) => alertname === alert)
    .map(({ exp_alerts }) => exp_alerts.length > 0);
  expect(firing).toContain(true);
  expect(firing).toContain(false);
});

/** The anchors of a page's headings, as GitHub writes them. */
function listAnchors(markdown: string): string[] {
  return [...markdown.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

test.each(rules)('$alert leads to a paragraph of operations.md', ({ labels, annotations }) => {
  const [page = '', anchor] = annotations.runbook_url.split('#');
  expect(page).toBe('docs/operations.md');
  expect(listAnchors(readFileSync(page, 'utf8'))).toContain(anchor);
  expect(['critical', 'warning', 'info']).toContain(labels.severity);
  expect(annotations.summary).not.toBe('');
});
