import { tracingChannel } from 'node:diagnostics_channel';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Protocol } from '../contract/protocol.js';
import type { KeySearch } from '../keys/format.js';
import type { Metrics, RequestReport } from './metrics.js';
import { type ClientTexts, createTextReaders, type TextReaders } from './request-texts.js';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The URL of the route as the document writes it, such as `/v1/pets/{petId}` */
    pattern?: string;
  }
  interface FastifyRequest {
    /** What the log and spans say besides what the request and its response show */
    report: RequestNotes;
    /** The protocol that was called; undefined outside of all */
    apiProtocol?: Protocol;
  }
}

/** What parts of the service note about a request while they serve it. */
interface RequestNotes {
  /** The code of the response's Error object, for the log */
  errorCode: string | undefined;
  /** Why the database could not serve the request, for the operator */
  errorReason: string | undefined;
  /** The status of an error that travels in a response with another one, as the result of a call */
  errorStatus: number | undefined;
  /** The `traceparent` in the body of a request without one among its headers, where the protocol has a place for it */
  traceparent: string | undefined;
  /** The ids of the span that a subscriber of `animal-store.request` has begun, as the log names them */
  traceIds: { readonly trace_id: string; readonly span_id: string } | undefined;
}

/** What subscribers of `animal-store.request` get at its `start`, and again at its `asyncEnd`. */
interface RequestTrace {
  readonly request: FastifyRequest;
  /** By performance.now() */
  readonly receivedAt: number;
  /** The names of the known operations called, one for each call of a batch */
  readonly calls: readonly string[];
  /** Texts that the client chose, as the log shows them: without keys, and shortened */
  readonly texts: ClientTexts;
  /** From `asyncEnd` on */
  report?: RequestReport;
}

/**
 * Traces each request, except probes, from its arrival to the end of its response. Everything up to the handler runs in
 * the stores that are bound to `start`. Nothing is published without subscribers.
 */
const requestChannel = tracingChannel<unknown, RequestTrace>('animal-store.request');

/** Says that an error is one that the client asked for. */
const PREFERENCE_APPLIED = 'preference-applied';

/** nginx's status for a client that reset its connection before its response, when no status was sent. */
const CLIENT_CLOSED_REQUEST = 499;

/** Reports each request once, when its response is sent or its client has left. Clients cannot make up operations. */
export function reportRequests(
  app: FastifyInstance,
  operations: readonly string[],
  { countRequest, redactKeys }: Pick<Metrics, 'countRequest'> & Pick<KeySearch, 'redactKeys'>,
  listCalls: (request: FastifyRequest) => readonly string[],
): void {
  const known = new Set(operations);
  const readers = createTextReaders({ redactKeys });
  app.addHook('onRoute', (route) => {
    route.config = { ...route.config, pattern: toPattern(route.url) };
  });
  app.decorateRequest('report');
  app.addHook('onRequest', (request, reply, next) => {
    request.report = {
      errorCode: undefined,
      errorReason: undefined,
      errorStatus: undefined,
      traceparent: undefined,
      traceIds: undefined,
    };
    const { receivedAt = performance.now() } = request.raw;
    let trace: RequestTrace | undefined;
    const finish = () => {
      const called = listCalls(request);
      const distinct = called.length > 1 ? [...new Set(called)] : called;
      const names = distinct.filter((name) => known.has(name));
      const report: RequestReport = {
        operation: distinct.length > 1 && names.length > 0 ? 'batch' : (names[0] ?? 'unknown'),
        protocol: request.apiProtocol ?? 'other',
        status: reply.raw.writableFinished
          ? (request.report.errorStatus ?? reply.raw.statusCode)
          : CLIENT_CLOSED_REQUEST,
        seconds: (performance.now() - receivedAt) / 1000,
        isRehearsed: reply.hasHeader(PREFERENCE_APPLIED),
      };
      countRequest(report);
      if (trace !== undefined) requestChannel.asyncEnd.publish(Object.assign(trace, { report }));
      logRequest(request, report, names, readers);
    };
    // The client has left while its request waited in the queue. A response behind others on the connection then does not
    // close.
    if (reply.raw.closed || request.raw.destroyed) return finish();
    // Fastify's onResponse hook does not run when the client leaves; a response always closes, and once.
    reply.raw.on('close', finish);
    if (!requestChannel.hasSubscribers || request.routeOptions.config.isProbe) return next();
    const calls = listCalls(request).filter((name) => known.has(name));
    trace = { request, receivedAt, calls, texts: readers.readTexts(request) };
    requestChannel.start.runStores(trace, next);
  });
}

/** What every log line of a request has. */
export function identify(request: FastifyRequest): object {
  const { id, routeOptions, addressId, headers, report } = request;
  const traceIds = report.traceIds ?? readTraceIds(headers.traceparent ?? report.traceparent);
  return {
    reqId: id,
    // Never a text that the client sent
    route: routeOptions.config.pattern ?? 'unknown',
    address: addressId,
    // OpenTelemetry's instrumentation of pino uses the same names, so that a line has one field for the trace with and
    // without it. Undefined would replace the field that the instrumentation adds.
    ...traceIds,
  };
}

function toPattern(url: string): string {
  return url.replaceAll(/:(\w+)(?:\([^)]*\))?/g, '{$1}');
}

/**
 * A `traceparent` (W3C Trace Context, section 3.2): its trace id is captured. Version 00 ends with the flags; later
 * versions may continue. Version ff and ids of zeros only are invalid.
 */
const TRACEPARENT = /^(?!ff|00.{54})[\da-f]{2}-(?!0{32})([\da-f]{32})-(?!0{16})[\da-f]{16}-[\da-f]{2}(?:-|$)/;

/** The trace that a request belongs to. The specification says to ignore an invalid header. */
function readTraceIds(traceparent: string | string[] | undefined): object | undefined {
  const trace_id = traceparent === undefined ? undefined : TRACEPARENT.exec(String(traceparent))?.[1];
  return trace_id === undefined ? undefined : { trace_id };
}

/** What the line of a request has, besides the fields of all its lines */
interface LogLine {
  keyId?: string | undefined;
  keyName?: string | undefined;
  protocol?: Protocol | 'other';
  operation?: string | undefined;
  method?: string;
  path?: string | undefined;
  status?: number;
  code?: string | undefined;
  reason?: string | undefined;
  rehearsed?: true | undefined;
  durationMs?: number;
  userAgent?: string | undefined;
}

/** A 5xx is only a warning here: the cause of a 500 is logged on a line of its own, and a 503 has a reason. */
function logRequest(
  request: FastifyRequest,
  { protocol, status, seconds, isRehearsed }: RequestReport,
  names: readonly string[],
  { readUnknownPath, readUserAgent }: TextReaders,
): void {
  const { isProbe = false } = request.routeOptions.config;
  // A request outside of the protocols, or whose client left early, has no admission.
  const apiKey = request.admission?.apiKey;
  const level = status >= 500 && !isRehearsed ? 'warn' : isProbe && status < 400 ? 'debug' : 'info';
  // Fields are set one by one: copied from another object, they would take pino a third longer.
  const line: LogLine = identify(request);
  line.keyId = apiKey?.id;
  line.keyName = apiKey?.name;
  line.protocol = protocol;
  line.operation = names.length > 0 ? names.join(',') : undefined;
  line.method = request.method;
  line.path = readUnknownPath(request);
  line.status = status;
  line.code = status === CLIENT_CLOSED_REQUEST ? 'client_left' : request.report.errorCode;
  line.reason = request.report.errorReason;
  line.rehearsed = isRehearsed || undefined;
  line.durationMs = Math.round(seconds * 1_000_000) / 1000;
  line.userAgent = readUserAgent(request);
  request.log[level](line, 'request');
}
