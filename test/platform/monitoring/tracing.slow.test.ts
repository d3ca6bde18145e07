import { execFileSync } from 'node:child_process';
import { copyFileSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, expect, test, vi } from 'vitest';
import { list, otherList } from '../../support/operations-under-test.js';
import { type Program, runKeys, runNode, untilListening } from '../../support/process.js';
import { reportMissing } from '../../support/programs.js';
import { findRedis } from '../../support/redis.js';
import { createTemporaryFolder } from '../../support/temporary-folder.js';
import { createCaller, createTestDatabase } from '../../support/test-service.js';

const redis = await findRedis();
const folder = await createTemporaryFolder();
const isInstalled = redis !== undefined && install();
let service: Program | undefined;

afterEach(async () => {
  service?.child.kill('SIGTERM');
  await service?.ended;
  await rm(folder, { recursive: true, force: true });
});

vi.setConfig({ testTimeout: 60_000 });

/** Installs what docs/tested.md names. Without a package registry tests are skipped; with CI=true that fails. */
function install(): boolean {
  const [, packages = ''] =
    /^npm install --no-save --omit=dev (.+)$/m.exec(readFileSync('docs/tested.md', 'utf8')) ?? [];
  copyFileSync('.npmrc', join(folder, '.npmrc'));
  const options = ['--no-audit', '--no-fund', '--ignore-scripts', '--prefix', folder];
  try {
    execFileSync('npm', ['install', ...options, ...packages.split(' ')], { stdio: 'pipe' });
    return true;
  } catch (error) {
    if (process.env.CI === 'true') throw error;
    reportMissing('OpenTelemetry (npm could not install it)');
    return false;
  }
}

/** The built service with the options of docs/tested.md, which look for the packages in this folder instead. */
async function startInstrumented(environment: Record<string, string>): Promise<Program> {
  const find = createRequire(join(folder, 'index.js')).resolve;
  const load = (name: string) => pathToFileURL(find(`@opentelemetry/${name}`)).href;
  return runNode(
    [
      ...['--import', load('auto-instrumentations-node/register')],
      ...['--experimental-loader', load('instrumentation/hook.mjs')],
      'dist/main.js',
    ],
    {
      ...{ APP_ENV: 'staging', PORT: '0', LOG_LEVEL: 'info', REDIS_URL: redis?.url ?? '' },
      ...{ OTEL_TRACES_EXPORTER: 'console', OTEL_METRICS_EXPORTER: 'none', OTEL_LOGS_EXPORTER: 'none' },
      ...{ OTEL_BSP_SCHEDULE_DELAY: '200', OTEL_NODE_RESOURCE_DETECTORS: 'none', ...environment },
    },
  );
}

/** The instrumentations that have printed a span of a trace. */
function instrumentationsOf(output: string, traceId: string): Set<string> {
  const spans = output.match(/^\{\n[\s\S]*?^\}$/gm) ?? [];
  const ofTrace = spans.filter((span) => span.includes(`\n  traceId: '${traceId}'`));
  return new Set(ofTrace.map((span) => /'@opentelemetry\/instrumentation-(\w+)'/.exec(span)?.[1] ?? ''));
}

test.skipIf(!isInstalled)(
  "OpenTelemetry's zero-code instrumentation prints spans of both protocols in the caller's trace",
  async () => {
    const DATABASE_URL = await createTestDatabase();
    const { key } = await runKeys({ DATABASE_URL }, 'create', '--name', 'x', '--plan', 'free');
    service = await startInstrumented({ DATABASE_URL });
    const call = createCaller({ url: await untilListening(service), key });
    const traces = {
      [list.path]: '4bf92f3577b34da6a3ce929d0e0e4736',
      [list.trpc]: '0af7651916cd43dd8448eb211c80319c',
    };
    for (const [path, traceId] of Object.entries(traces)) {
      const { status, body } = await call(path, {
        headers: { traceparent: `00-${traceId}-00f067aa0ba902b7-01` },
      });
      expect([status, body]).toEqual([200, path === list.path ? [] : { result: { data: [] } }]);
      const { output } = service;
      const expected = expect.arrayContaining(['http', 'ioredis', 'pg']);
      await expect.poll(() => [...instrumentationsOf(output(), traceId)]).toEqual(expected);
      const [line = ''] = await service.until(
        new RegExp(`^.*"trace_id":"${traceId}".*"msg":"request".*$`, 'm'),
      );
      expect(line.match(/"trace_id"/g)).toHaveLength(1);
    }
    // Without a traceparent, the line has the id of the trace that begins here.
    await call(otherList.path);
    const [, traceId = ''] = await service.until(
      new RegExp(`"trace_id":"(\\w{32})".*"operation":"${otherList.name}"`),
    );
    expect(Object.values(traces)).not.toContain(traceId);
  },
);
