/*
 * Sends spans of the service to an OpenTelemetry collector:
 *
 *   node --import @animal-store/platform/tracing dist/main.js
 *
 * What it imports is no dependency of the service: the operator installs it. It changes no module: it subscribes to the
 * diagnostics channels of the service, Fastify and ioredis, on which nothing is published without it. Names and attributes are
 * those of OpenTelemetry's semantic conventions, and `animal_store.*`, for whatever store, where there is none.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { channel, tracingChannel } from 'node:diagnostics_channel';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import {
  DiagConsoleLogger,
  DiagLogLevel,
  defaultTextMapGetter,
  diag,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';

/** How long the service waits at its end for the collector to take the last spans. */
const FLUSH_TIMEOUT_MS = 2_000;
/** What is sent, and how. */
const EXPORTER = 'otlp';
const PROTOCOL = 'http/json';

/**
 * For whom something happens: `{ context, links, isBatch, requests, calls }`, where `context` has the span that is the
 * parent, `links` are the spans of other requests that share it, and `requests` counts them all. Undefined for what the
 * service asks by itself, which gets no spans.
 */
const storage = new AsyncLocalStorage();

const { OTEL_SDK_DISABLED, OTEL_TRACES_EXPORTER = '' } = process.env;
if (OTEL_SDK_DISABLED?.toLowerCase() !== 'true' && OTEL_TRACES_EXPORTER.toLowerCase() !== 'none') start();

function start() {
  diag.setLogger(new DiagConsoleLogger(), DiagLogLevel.WARN);
  nameUnknownValues();
  // The sampler, the limits and the exporter read the variables of the specification (OTEL_TRACES_SAMPLER and so on).
  const provider = new BasicTracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes(describeService()))
      .merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
  });
  const tracer = provider.getTracer('animal-store');
  traceRequests(tracer);
  traceOperations(tracer);
  followBatches();
  traceStatements(tracer);
  traceRedis(tracer);
  channel('animal-store.close').subscribe(({ waitFor }) => waitFor(shutDown(provider)));
}

/** A value that is not known is named and otherwise ignored, as the specification says. */
function nameUnknownValues() {
  const known = {
    OTEL_TRACES_EXPORTER: EXPORTER,
    OTEL_EXPORTER_OTLP_PROTOCOL: PROTOCOL,
    OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: PROTOCOL,
  };
  for (const [name, value] of Object.entries(known)) {
    const set = process.env[name] || value;
    if (set.toLowerCase() !== value) diag.warn(`${name}=${set} is not supported: spans are sent as ${value}`);
  }
}

/** By the package.json of the program that is run, dist/main.js: this file may be anywhere. */
function describeService() {
  try {
    const manifest = readFileSync(join(dirname(process.argv[1]), '../package.json'), 'utf8');
    const { name, version } = JSON.parse(manifest);
    return { 'service.name': name, 'service.version': version };
  } catch {
    return {};
  }
}

/** One span for each request, refused ones too, named by what it calls. */
function traceRequests(tracer) {
  const propagator = new W3CTraceContextPropagator();
  /** The span of a request, and what happens for it */
  const traced = new WeakMap();
  const requests = tracingChannel('animal-store.request');
  requests.start.bindStore(storage, ({ request, receivedAt, calls, texts }) => {
    const parent = propagator.extract(ROOT_CONTEXT, request.headers, defaultTextMapGetter);
    const span = tracer.startSpan(
      nameRequest(request, calls),
      {
        kind: SpanKind.SERVER,
        startTime: performance.timeOrigin + receivedAt,
        attributes: describeRequest(request, texts),
      },
      parent,
    );
    const { traceId, spanId } = span.spanContext();
    request.report.traceIds = { trace_id: traceId, span_id: spanId };
    const store = { context: trace.setSpan(parent, span), links: [], requests: 1, calls: calls.length };
    traced.set(request, store);
    return store;
  });
  requests.asyncEnd.subscribe(({ request, calls, report: { operation, status, protocol } }) => {
    const span = trace.getSpan(traced.get(request).context);
    const code = request.report.errorCode;
    // Over MCP, what a request calls may not be known before its body is.
    if (calls.length === 0 && operation !== 'unknown') span.updateName(operation);
    span.setAttributes({
      'http.response.status_code': status,
      'animal_store.protocol': protocol,
      'animal_store.error_code': code,
      // A semantic convention for what is extracted from the Authorization header.
      'enduser.id': request.admission?.apiKey?.id,
      'animal_store.plan': request.admission?.apiKey?.plan,
    });
    if (status >= 500) {
      span.setAttribute('error.type', code ?? String(status));
      span.setStatus({ code: SpanStatusCode.ERROR });
    }
    span.end();
  });
  // A body arrives by events of its connection, which do not belong to the request.
  tracingChannel('fastify.request.handler').start.bindStore(storage, ({ request }) => traced.get(request));
}

/** `createPet`, `batch`, or the method and the route where no operation is called. */
function nameRequest({ method, routeOptions }, calls) {
  if (calls.length > 1) return 'batch';
  return calls[0] ?? [method, routeOptions.config.pattern].filter(Boolean).join(' ');
}

/** The texts are without keys: neither `url` nor a header is. */
function describeRequest({ method, routeOptions, raw, addressId }, { path, query, userAgent }) {
  return {
    'http.request.method': method,
    'http.route': routeOptions.config.pattern,
    'url.path': path,
    'url.query': query,
    'url.scheme': 'http',
    'network.protocol.version': raw.httpVersion,
    'client.address': addressId,
    'user_agent.original': userAgent,
  };
}

/** The calls of a batch have spans of their own. That of a single call is the request's. */
function traceOperations(tracer) {
  const operations = tracingChannel('animal-store.operation');
  const spans = new WeakMap();
  operations.start.bindStore(storage, (call) => {
    const store = storage.getStore();
    if (store === undefined || store.calls < 2) return store;
    const span = tracer.startSpan(call.operation, undefined, store.context);
    spans.set(call, span);
    return { ...store, context: trace.setSpan(store.context, span) };
  });
  operations.subscribe(ending(spans));
}

/** What is sent together belongs to the first request that is recorded, with links to the others. */
function followBatches() {
  const origins = new WeakMap();
  channel('animal-store.batch.call').subscribe((call) => {
    const store = storage.getStore();
    if (store !== undefined) origins.set(call, store);
  });
  tracingChannel('animal-store.batch').start.bindStore(storage, ({ calls }) => {
    const stores = calls.map((call) => origins.get(call)).filter((store) => store !== undefined);
    const recorded = [...new Map(stores.map((store) => [trace.getSpan(store.context), store]))].filter(
      ([span]) => span.isRecording(),
    );
    const [first, ...others] = recorded;
    if (first === undefined) return undefined;
    return {
      context: first[1].context,
      links: others.map(([span]) => ({ context: span.spanContext() })),
      requests: recorded.length,
      batchSize: calls.length,
    };
  });
}

function traceStatements(tracer) {
  const statements = tracingChannel('animal-store.statement');
  const spans = new WeakMap();
  statements.start.subscribe((statement) => {
    const { name, text } = statement;
    startClientSpan(tracer, spans, statement, name, {
      'db.system.name': 'postgresql',
      'db.query.summary': name,
      'db.query.text': text?.replace(/\s+/g, ' ').trim(),
    });
  });
  statements.subscribe(ending(spans));
}

function traceRedis(tracer) {
  const commands = tracingChannel('ioredis:command');
  const spans = new WeakMap();
  commands.start.subscribe((context) => {
    const { command, database, serverAddress, serverPort } = context;
    const name = command.toUpperCase();
    startClientSpan(tracer, spans, context, name, {
      'db.system.name': 'redis',
      'db.operation.name': name,
      'db.namespace': String(database),
      'server.address': serverAddress,
      'server.port': serverPort,
    });
  });
  commands.subscribe(ending(spans));
}

function startClientSpan(tracer, spans, message, name, attributes) {
  const store = storage.getStore();
  if (store === undefined) return;
  const { context, links, requests, batchSize = 1 } = store;
  const options = {
    kind: SpanKind.CLIENT,
    links,
    attributes: {
      ...attributes,
      'animal_store.requests': requests,
      // By the convention, only where it is more than one.
      'db.operation.batch.size': batchSize > 1 ? batchSize : undefined,
    },
  };
  spans.set(message, tracer.startSpan(name, options, context));
}

/** Subscribers that end the span of a message when what it is about has settled. */
function ending(spans) {
  return {
    error(message) {
      const { error } = message;
      const span = spans.get(message);
      span?.setAttribute('error.type', String(error?.code ?? error?.name ?? 'error'));
      // By the convention for servers, what a client did wrong is no error of theirs.
      const isClientError = error?.status < 500 || error?.code === 'BAD_REQUEST';
      if (!isClientError) span?.setStatus({ code: SpanStatusCode.ERROR });
    },
    asyncEnd: (message) => spans.get(message)?.end(),
  };
}

/** Sends what there is, and gives up on a collector that does not answer. */
async function shutDown(provider) {
  const timeout = new Promise((resolve) => setTimeout(resolve, FLUSH_TIMEOUT_MS).unref());
  await Promise.race([provider.shutdown(), timeout]);
}
