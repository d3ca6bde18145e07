import { execFileSync } from 'node:child_process';
import { copyFileSync, readdirSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findRedis, reportMissing } from '@animal-store/limits/testing';
import {
  createCaller,
  createTemporaryFolder,
  oldToolCall,
  type Program,
  post,
  runCommand,
  untilListening,
} from '@animal-store/platform/testing';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { create, list, newItem, read, TABLE } from '#operations-under-test';
import { definition as boats } from '../../examples/boatyard/src/definition.js';
import { applyMigrations } from '../../packages/platform/src/migrations/migration-runner.js';
import { type Span, startCollector } from '../../packages/platform/test/support/otlp-collector.js';
import { runKeys, UNREACHED_LIMITS } from '../support/programs.js';
import { createTestDatabase } from '../support/service.js';

const SERVER = 2;
const VERSIONS = [20, 22, 24, 26];

const redis = await findRedis();
const folder = await createTemporaryFolder();
const isInstalled = redis !== undefined && install();
const collector = await startCollector();
const programs: Program[] = [];
let DATABASE_URL: string;
let key: string;
let keyId: string;

vi.setConfig({ testTimeout: 120_000 });
beforeAll(async () => {
  DATABASE_URL = await createTestDatabase();
  ({ key, id: keyId } = await runKeys({ DATABASE_URL }, 'create', '--name', 'x', ...UNREACHED_LIMITS));
});
afterEach(async () => {
  for (const { child } of programs) child.kill('SIGTERM');
  await Promise.all(programs.splice(0).map(({ ended }) => ended));
});
afterAll(async () => {
  await collector.close();
  await rm(folder, { recursive: true, force: true });
});

/** Does what docs/operations.md says, in a temporary folder. Without a package registry tests are skipped. */
function install(): boolean {
  const [, options = ''] =
    /^npm install --prefix \/opt\/animal-store-tracing (.+)$/m.exec(
      readFileSync('docs/operations.md', 'utf8'),
    ) ?? [];
  copyFileSync('tracing.mjs', join(folder, 'tracing.mjs'));
  try {
    execFileSync('npm', ['install', '--prefix', folder, '--silent', ...options.split(' ')], {
      stdio: 'pipe',
    });
    return true;
  } catch (error) {
    if (process.env.CI === 'true') throw error;
    reportMissing('OpenTelemetry (npm could not install it)');
    return false;
  }
}

/** The program of a version of Node.js, from npm. */
function findNode(version: number): string {
  const args = [join('.ci', 'with-node'), String(version), 'node', '-p', 'process.execPath'];
  return execFileSync('bash', args, { encoding: 'utf8' }).trim();
}

async function startTraced(node: string, environment: Record<string, string> = {}, root = '.') {
  const program = runCommand(node, ['--import', join(folder, 'tracing.mjs'), join(root, 'dist/main.js')], {
    ...{ APP_ENV: 'staging', PORT: '0', LOG_LEVEL: 'info', REDIS_URL: redis?.url ?? '', DATABASE_URL },
    ...{ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: '100', ...environment },
  });
  programs.push(program);
  const url = await untilListening(program);
  return { program, url, call: createCaller({ url, key }) };
}

const newTrace = () =>
  Array.from({ length: 32 }, (_, index) =>
    (index === 0 ? 1 : Math.floor(Math.random() * 16)).toString(16),
  ).join('');
const within = (traceId: string) => ({ traceparent: `00-${traceId}-00f067aa0ba902b7-01` });
const untilTraced = (traceId: string, count: number): Promise<Span[]> =>
  vi.waitUntil(
    () => {
      const spans = collector.ofTrace(traceId);
      return spans.length >= count && spans;
    },
    { timeout: 20_000 },
  );

test('what the recipe installs brings no package of the development back', () => {
  const installed = readdirSync(join(folder, 'node_modules')).filter((name) => !name.startsWith('.'));
  expect(installed).toEqual(isInstalled ? ['@opentelemetry'] : installed);
});

test.skipIf(!isInstalled).each(VERSIONS)(
  'on Node.js %i a create on one node and a batch on another are one trace, with spans by operation, statement and command',
  async (version) => {
    const node = findNode(version);
    const [first, second] = [await startTraced(node), await startTraced(node)];
    const traceId = newTrace();
    const created = await first.call(
      create.path,
      post(newItem('Miso'), { ...within(traceId), 'user-agent': 'test/1' }),
    );
    expect(created.status).toBe(201);
    const input = encodeURIComponent(JSON.stringify({ 0: { limit: 1 }, 1: read.inputOf(created.body.id) }));
    const batch = await second.call(`${list.trpc},${read.name}?batch=1&input=${input}`, {
      headers: within(traceId),
    });
    expect(batch.status).toBe(200);
    expect(batch.body[1].result.data).toEqual(created.body);

    const spans = await untilTraced(traceId, 9);
    const [creating, both] = [create.name, 'batch'].map((name) =>
      spans.find((span) => span.name === name && span.kind === SERVER),
    );
    expect(creating).toMatchObject({ parentSpanId: '00f067aa0ba902b7', service: 'animal-store' });
    expect(creating?.attributes).toMatchObject({
      'http.request.method': 'POST',
      'http.route': list.path,
      'http.response.status_code': 201,
      'url.path': list.path,
      'user_agent.original': 'test/1',
      'animal_store.protocol': 'rest',
      'animal_store.plan': 'enterprise',
      'enduser.id': keyId,
    });
    expect(both?.attributes).toMatchObject({
      'animal_store.protocol': 'trpc',
      'http.response.status_code': 200,
    });
    const childrenOf = (parent: Span | undefined) =>
      spans.filter(({ parentSpanId }) => parentSpanId === parent?.spanId);
    expect(
      childrenOf(creating)
        .map(({ name }) => name)
        .sort(),
    ).toEqual(['EVALSHA', 'keys-find-by-hashes', `${TABLE}-create`]);
    expect(childrenOf(both).map(({ name }) => name)).toEqual(expect.arrayContaining([list.name, read.name]));
    const statement = (name: string) => spans.find((span) => span.name === name);
    expect(statement(`${TABLE}-list`)?.parentSpanId).toBe(statement(list.name)?.spanId);
    expect(statement(`${TABLE}-create`)?.attributes).toMatchObject({
      'db.system.name': 'postgresql',
      'db.query.text': expect.stringContaining(`INSERT INTO "public"."${TABLE}"`),
      'animal_store.requests': 1,
    });
    await first.program.until(
      new RegExp(`"trace_id":"${traceId}","span_id":"${creating?.spanId}".*"msg":"request"`),
    );
  },
);

test.skipIf(!isInstalled)('another store has spans, too, with the name in its package.json', async () => {
  const url = await createTestDatabase('template0');
  await applyMigrations(url, boats.root);
  const root = fileURLToPath(boats.root);
  const { call } = await startTraced(process.execPath, { DATABASE_URL: url }, root);
  const traceId = newTrace();
  await call(boats.identity.mainPath, { key: null, headers: within(traceId) });
  const [span] = await untilTraced(traceId, 1);
  expect(span).toMatchObject({ kind: SERVER, service: 'boatyard', version: '1.0.0' });
});

test.skipIf(!isInstalled)(
  'the span of a tool call has the name of its operation, also where only the body names it',
  async () => {
    const { call } = await startTraced(process.execPath);
    for (const head of [{}, { 'mcp-method': 'tools/call' }]) {
      const traceId = newTrace();
      const { status } = await call('/mcp', oldToolCall(list.name, {}, { ...head, ...within(traceId) }));
      expect(status).toBe(200);
      const isRoot = ({ kind }: Span) => kind === SERVER;
      const findRoot = () => collector.ofTrace(traceId).find(isRoot);
      expect((await vi.waitUntil(findRoot, { timeout: 20_000 })).name).toBe(list.name);
    }
  },
);

test.skipIf(!isInstalled)(
  'a statement that serves several requests belongs to one, and is linked to the others',
  async () => {
    const { call } = await startTraced(process.execPath);
    await call(list.path);
    const shared = await vi.waitUntil(
      async () => {
        const answers = await Promise.all(Array.from({ length: 40 }, () => call(`${list.path}?limit=1`)));
        for (const { status } of answers) expect(status).toBe(200);
        return collector.spans.find(({ name, links }) => name === `${TABLE}-list` && links.length > 0);
      },
      { timeout: 20_000, interval: 200 },
    );
    expect(shared.attributes['animal_store.requests']).toBe(shared.links.length + 1);
    for (const { traceId, spanId } of shared.links) {
      const [linked] = await untilTraced(traceId, 1);
      expect(traceId).not.toBe(shared.traceId);
      expect(collector.ofTrace(traceId).map((span) => span.spanId)).toContain(spanId);
      expect(linked).toBeDefined();
    }
  },
);

test.skipIf(!isInstalled)(
  'an idle process and its probes begin no trace, refusals do, and the last spans are sent before the end',
  async () => {
    const before = collector.spans.length;
    const { program, url, call } = await startTraced(process.execPath, { OTEL_BSP_SCHEDULE_DELAY: '60000' });
    expect((await call('/health/ready', { key: null })).status).toBe(200);
    // Until the service has asked a question of its own: whether the key has changed.
    const checks = /query_duration_seconds_count\{statement="keys-find-changed"\} (\d+)/;
    const countChecks = async () =>
      Number(checks.exec(await (await fetch(`${url}/metrics`)).text())?.[1] ?? 0);
    const tried = await countChecks();
    expect((await call(list.path)).status).toBe(200);
    await vi.waitUntil(async () => (await countChecks()) > tried, { timeout: 20_000, interval: 200 });
    expect((await call(list.path, { key: 'as_test_wrong' })).status).toBe(401);
    program.child.kill('SIGTERM');
    expect(await program.ended).toBe(0);
    const sent = collector.spans.slice(before);
    const roots = sent.filter(({ parentSpanId }) => !parentSpanId);
    expect(roots.map(({ name, attributes }) => [name, attributes['http.response.status_code']])).toEqual([
      [list.name, 200],
      [list.name, 401],
    ]);
    const refused = roots[1];
    expect(refused?.attributes).toMatchObject({ 'animal_store.error_code': 'invalid_api_key' });
    expect(refused?.status.code ?? 0).toBe(0);
    expect(program.output()).toMatch(new RegExp(`"trace_id":"${refused?.traceId}"`));
  },
);

test.skipIf(!isInstalled)(
  'a key in a path, a query or a user agent is no more in a span than in the log, and the version of the service is',
  async () => {
    const { program, call } = await startTraced(process.execPath);
    const escaped = `%${key.charCodeAt(0).toString(16)}${key.slice(1)}`;
    const traceId = newTrace();
    const headers = { ...within(traceId), 'user-agent': `${'x'.repeat(190)}${key}` };
    expect((await call(`/v1/${escaped}?api_key=${key}&k=${escaped}`, { headers })).status).toBe(404);
    const findRoot = () => collector.ofTrace(traceId).find(({ kind }) => kind === SERVER);
    const span = await vi.waitUntil(findRoot, { timeout: 20_000 });
    expect(JSON.stringify(collector.ofTrace(traceId))).not.toContain(key.slice(13));
    const hint = `${key.slice(0, 12)}…`;
    expect(span?.attributes).toMatchObject({
      'url.path': `/v1/${hint}`,
      'url.query': `api_key=${hint}&k=${hint}`,
      'user_agent.original': `${'x'.repeat(190)}${key.slice(0, 10)}`,
    });
    expect(span?.version).toBe(JSON.parse(readFileSync('package.json', 'utf8')).version);
    await program.until(/"msg":"request"/);
    expect(program.output()).not.toContain(key.slice(13));
  },
);

test.skipIf(!isInstalled)(
  'OTEL_TRACES_EXPORTER=none sends nothing, and what is not supported is named',
  async () => {
    const silent = await startTraced(process.execPath, { OTEL_TRACES_EXPORTER: 'none' });
    const named = await startTraced(process.execPath, {
      ...{ OTEL_TRACES_EXPORTER: 'zipkin', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' },
      OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json',
    });
    for (const { call } of [silent, named]) expect((await call(list.path)).status).toBe(200);
    await named.program.until(/OTEL_TRACES_EXPORTER=zipkin is not supported: spans are sent as otlp/);
    expect(named.program.output()).toMatch(
      /OTEL_EXPORTER_OTLP_PROTOCOL=grpc is not supported: .* http\/json/,
    );
    expect(named.program.output()).not.toContain('OTEL_EXPORTER_OTLP_TRACES_PROTOCOL');
    const [line = ''] = await silent.program.until(/^.*"msg":"request".*$/m);
    expect(line).not.toContain('span_id');
  },
);

test.skipIf(!isInstalled)(
  'a collector that is away costs spans, and neither requests nor the exit',
  async () => {
    const { program, call } = await startTraced(process.execPath, {
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1',
    });
    expect((await call(list.path)).status).toBe(200);
    program.child.kill('SIGTERM');
    expect(await program.ended).toBe(0);
  },
);
