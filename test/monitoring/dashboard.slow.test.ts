import { readFileSync } from 'node:fs';
import { findRedis } from '@animal-store/limits/testing';
import { createCaller, post, rpcPath, untilListening } from '@animal-store/platform/testing';
import { afterEach, expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import { create, list, otherList, read } from '#operations-under-test';
import { startKeyServer } from '../../packages/platform/test/support/key-server.js';
import { hasPrometheus, startPrometheus } from '../../packages/platform/test/support/prometheus.js';
import { setUpServiceProcesses } from '../../packages/platform/test/support/service-processes.js';
import { runKeys, UNREACHED_LIMITS } from '../support/programs.js';
import { createTestDatabase } from '../support/service.js';

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly type: string;
  readonly description?: string;
  readonly datasource?: { readonly uid: string };
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly expr: string; readonly datasource: { readonly uid: string } }[];
}

const dashboard = JSON.parse(readFileSync('docs/monitoring/dashboard.json', 'utf8'));
const panels: Panel[] = dashboard.panels;
const charts = panels.filter(({ type }) => type !== 'row');
const alertRules: { expr: string }[] = parse(readFileSync('docs/monitoring/alerts.yaml', 'utf8')).groups[0]
  .rules;
/** What Grafana puts in place of variables; the interval is a few of the test's scrapes. */
const VARIABLES: Readonly<Record<string, string>> = {
  job: 'animal-store',
  instance: '.*',
  protocol: '.*',
  __rate_interval: '10s',
};

// biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana's notation
const CHOSEN_SOURCE = '${datasource}';

const redis = await findRedis();
const testWithPrometheus = test.skipIf(redis === undefined || !hasPrometheus());
const { start } = setUpServiceProcesses();
const closers: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

vi.setConfig({ testTimeout: 90_000 });

/** Sends requests of every kind, until it is closed. */
async function startMixedLoad(DATABASE_URL: string, url: string): Promise<void> {
  const issueKey = (...options: string[]) =>
    runKeys({ DATABASE_URL }, 'create', '--name', 'load', ...options).then(({ key }) => key as string);
  const key = await issueKey(...UNREACHED_LIMITS);
  const free = await issueKey('--plan', 'free');
  const call = createCaller({ url, key });
  let isRunning = true;
  const run = async () => {
    while (isRunning) {
      // One at a time, because an item by itself and several at once are different statements.
      await call(read.pathOf(1));
      await call(rpcPath(read.name, read.inputOf(1)));
      await call(
        `${rpcPath(`${read.name},${read.name}`, { 0: read.inputOf(1), 1: read.inputOf(2) })}&batch=1`,
      );
      await call(create.path, post(create.body));
      await call(`${create.trpc},${create.name}?batch=1`, post({ 0: create.body, 1: create.body }));
      await Promise.all([
        ...[list.path, otherList.path, '/v1/nope'].map((path) => call(path)),
        ...[list.name, otherList.name, `${list.name},${otherList.name}`].map((path) =>
          call(`/trpc/${path}?batch=1`),
        ),
        call(list.path, { headers: { connection: 'close' } }),
        call(list.path, { key: null }),
        call(list.path, { key: free }),
        call('/health/ready', { key: null }),
      ]);
    }
  };
  const running = run();
  closers.push(async () => {
    isRunning = false;
    await running;
  });
}

async function startScrapedService() {
  const DATABASE_URL = await createTestDatabase();
  const environment = { APP_ENV: 'staging', REDIS_URL: redis?.url ?? '', METRICS_PORT: '0' };
  const services = [0, 1].map(() => start({ DATABASE_URL, ...environment }));
  const urls = await Promise.all(services.map(untilListening));
  const targets = services.map((service) => /are on http:\/\/([^"]+)"/.exec(service.output())?.[1] ?? '');
  const keyServer = await startKeyServer({ DATABASE_URL });
  closers.push(async () => void (await keyServer.stop()));
  const prometheus = await startPrometheus([...targets, `127.0.0.1:${keyServer.port}`]);
  closers.push(() => prometheus.close());
  for (const url of urls) await startMixedLoad(DATABASE_URL, url);
  return prometheus;
}

function substitute(expr: string): string {
  return expr.replaceAll(/\$(\w+)/g, (_match, name) => VARIABLES[name] ?? `unknown variable ${name}`);
}

/** The metrics that a query names, without those that rules record, whose names have colons. */
const listNames = (expr: string) =>
  [...expr.matchAll(/(?<![\w:])(?:(?:animal_store|nodejs|process)_\w+|up\b)/g)].map(([name]) => name);

testWithPrometheus(
  'under load, every chart of the dashboard has data, and no query or alert names a metric that does not exist',
  async () => {
    const { query, listMetrics } = await startScrapedService();
    const findEmpty = async () => {
      const empty: string[] = [];
      for (const { title, targets = [] } of charts) {
        for (const { expr } of targets) {
          const values = Object.values(await query(substitute(expr)));
          // A statement that has not run for a while, such as a lookup of keys, has a series without a number.
          if (!values.some(Number.isFinite)) empty.push(`${title}: ${expr}`);
        }
      }
      return empty;
    };
    await expect.poll(findEmpty, { timeout: 45_000, interval: 1_000 }).toEqual([]);
    const queries = [...charts.flatMap(({ targets = [] }) => targets), ...alertRules];
    const named = queries.flatMap(({ expr }) => listNames(expr));
    for (const { expr } of queries) expect(expr).toMatch(/animal_store_|process_|nodejs_|up\{/);
    const existing = await listMetrics();
    expect(named.filter((name) => !existing.includes(name))).toEqual([]);
  },
);

test('every chart has a description and the data source that the reader chooses', () => {
  for (const { title, description = '', datasource, targets = [] } of charts) {
    expect([title, description]).not.toContain('');
    expect(targets).not.toEqual([]);
    for (const source of [datasource, ...targets.map((target) => target.datasource)])
      expect(source?.uid, title).toBe(CHOSEN_SOURCE);
  }
  const variables: { name: string }[] = dashboard.templating.list;
  const names = ['datasource', ...Object.keys(VARIABLES)].filter((name) => !name.startsWith('__'));
  expect(variables.map(({ name }) => name)).toEqual(names);
});

test('panels have ids of their own and do not overlap', () => {
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, n) => `${x + (n % w)},${y + Math.floor(n / w)}`),
  );
  expect(new Set(cells).size).toBe(cells.length);
  for (const { gridPos } of panels) expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24);
});
