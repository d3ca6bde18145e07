import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

type Value = { readonly stringValue?: string; readonly intValue?: number | string };

/** A span as OTLP/HTTP has it in JSON, with its attributes as an object. */
export interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  /** 1: internal, 2: server, 3: client */
  readonly kind: number;
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly status: { readonly code?: number };
  readonly attributes: Readonly<Record<string, string | number>>;
  readonly service: string;
  readonly version: string;
}

interface Attribute {
  readonly key: string;
  readonly value: Value;
}

type SentSpan = Omit<Span, 'attributes' | 'service' | 'version'> & {
  readonly attributes: readonly Attribute[];
};

interface Export {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly { readonly spans: readonly SentSpan[] }[];
  }[];
}

/** An OpenTelemetry collector that keeps the spans that it is sent (https://opentelemetry.io/docs/specs/otlp/). */
export async function startCollector() {
  const spans: Span[] = [];
  const server = createServer(async (request, response) => {
    for (const { resource, scopeSpans } of ((await json(request)) as Export).resourceSpans) {
      const { 'service.name': name, 'service.version': version } = toObject(resource.attributes);
      const described = { service: String(name), version: String(version) };
      for (const span of scopeSpans.flatMap((scope) => scope.spans))
        spans.push({ ...span, links: span.links ?? [], attributes: toObject(span.attributes), ...described });
    }
    response.setHeader('content-type', 'application/json').end('{}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    spans: spans as readonly Span[],
    ofTrace: (traceId: string) => spans.filter((span) => span.traceId === traceId),
    close: () => new Promise((resolve) => server.close(resolve)),
  };
}

function toObject(attributes: readonly Attribute[]): Record<string, string | number> {
  return Object.fromEntries(
    attributes.map(({ key, value: { stringValue, intValue } }) => [key, stringValue ?? Number(intValue)]),
  );
}
