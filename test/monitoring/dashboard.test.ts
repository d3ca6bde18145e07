import { expect, onTestFinished, test } from 'vitest';
import { filesOf, STORES } from '../support/operators-files.js';
import { startService } from '../support/service.js';

test.each(STORES)(
  'the dashboard of $identity.name shows every metric of its service, and no alert names another',
  async (definition) => {
    const { metricsPrefix } = definition.identity;
    const service = await startService({ definition });
    onTestFinished(() => service.close());
    const text = await (await fetch(`${service.url}/metrics`)).text();
    const own = [...text.matchAll(/^# TYPE (\w+)/gm)]
      .map(([, name = '']) => name)
      .filter((name) => name.startsWith(metricsPrefix));
    expect(own.length).toBeGreaterThan(10);
    // The process counts the lines of its log, and a service with Redis its commands.
    const all = [
      ...own,
      ...['log_lines_lost_total', 'redis_command_duration_seconds'].map((name) => metricsPrefix + name),
    ];
    const { 'docs/monitoring/dashboard.json': dashboard = '', 'docs/monitoring/alerts.yaml': alerts = '' } =
      filesOf(definition);
    expect(all.filter((name) => !new RegExp(`\\b${name}(?:_count|_bucket)?\\{`).test(dashboard))).toEqual([]);
    const named = alerts.match(new RegExp(`(?<!:)\\b${metricsPrefix}\\w+`, 'g')) ?? [];
    expect(named.length).toBeGreaterThan(10);
    // That of a process of its own, which manages keys.
    const known = [...all, `${metricsPrefix}keys_ready`];
    const unknown = named.filter((name) => !known.includes(name.replace(/_(?:count|bucket)$/, '')));
    expect(unknown).toEqual([]);
  },
);
