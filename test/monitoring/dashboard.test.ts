import { readFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { startService } from '../support/service.js';

test('the dashboard shows every metric of the service', async () => {
  const service = await startService();
  onTestFinished(() => service.close());
  const text = await (await fetch(`${service.url}/metrics`)).text();
  const own = [...text.matchAll(/^# TYPE (animal_store_\w+)/gm)].map(([, name = '']) => name);
  expect(own.length).toBeGreaterThan(10);
  const dashboard = readFileSync('docs/monitoring/dashboard.json', 'utf8');
  // The process counts the lines of its log, and a service with Redis its commands.
  const all = [...own, 'animal_store_log_lines_lost_total', 'animal_store_redis_command_duration_seconds'];
  expect(all.filter((name) => !new RegExp(`\\b${name}(?:_count|_bucket)?\\{`).test(dashboard))).toEqual([]);
});
