import type { AnyTRPCProcedure, AnyTRPCRouter } from '@trpc/server';
import { createOpenApiNodeHttpHandler } from 'trpc-to-openapi';
import { z } from 'zod';
import type { RequestContext } from '../operations/builder.js';
import type { Operation } from '../operations/list-operations.js';

/**
 * Runs operations through trpc-to-openapi's handler for node:http. Fastify has found the route and read the input; the
 * handler finds the procedure, creates its caller, runs it, and writes status, headers and the output as JSON.
 *
 * It is kept from three things:
 * - Coercing input. It would read query and body again, and change the input schemas so that they accept strings for
 *   numbers, over tRPC too. Once the handler exists, it sees inputs as `void`; the real input reaches the procedure
 *   through the adapter request.
 * - Writing its own error body. The procedure's error is kept on the adapter request, and thrown from here.
 * - Building a web Request per call, which costs more than the rest of its work. It builds none if the request already
 *   is an `instanceof Request`.
 */

/** One operation, ready to run. Throws whatever the procedure throws. */
export type OpenApiHandler = (context: RequestContext, input: unknown) => Promise<AdapterResponse>;

type Handle = (request: AdapterRequest, response: AdapterResponse) => Promise<void>;
type HandlerOptions = Parameters<typeof createOpenApiNodeHttpHandler>[0];

/** `getHeaders` derives headers from the output, to be sent with the declared status. */
export function createOpenApiHandler(
  router: AnyTRPCRouter,
  operation: Operation,
  getHeaders?: (output: never) => Record<string, string>,
): OpenApiHandler {
  const { name, hasOutput, success } = operation;
  const { _def } = router._def.procedures[name] as AnyTRPCProcedure;
  const status = success?.status ?? (hasOutput ? 200 : 204);
  const procedureStub = { _def: { ..._def, inputs: _def.inputs as unknown[] } };
  const options = {
    router: createRouterStub(router, name, procedureStub),
    createContext: ({ req }: { req: AdapterRequest }) => req,
    ...(status !== 200 && {
      responseMeta: ({ data: [output], errors }: { data: [output: never]; errors: readonly Error[] }) =>
        errors.length > 0 ? {} : { status, headers: getHeaders?.(output) },
    }),
    onError: ({ error, req }: { error: Error; req: AdapterRequest }) => {
      req.error = error;
    },
  };
  const handle = createOpenApiNodeHttpHandler(options as unknown as HandlerOptions) as unknown as Handle;
  procedureStub._def.inputs = [z.void()];
  // The handler finds its one procedure by method and path. Any path that matches the template will do.
  const url = operation.path.replaceAll(/[{}]/g, '');
  return async (context, input) => {
    const request = new AdapterRequest(operation.method, url, context, input);
    const response = new AdapterResponse();
    await handle(request, response);
    if (request.error !== undefined) throw request.error;
    return response;
  };
}

/** A router of one procedure. Its caller replaces tRPC's, which builds a chain of proxies for each call. */
function createRouterStub(router: AnyTRPCRouter, name: string, procedureStub: object) {
  const procedure = router._def.procedures[name] as AnyTRPCProcedure;
  const { type } = procedure._def;
  const createCaller = ({ context: ctx, input }: AdapterRequest) => ({
    only: () =>
      procedure({
        ctx,
        path: name,
        type,
        getRawInput: async () => input,
        signal: neverAborted,
        batchIndex: 0,
      }),
  });
  // The handler formats an error body that is never sent.
  const _config = { ...router._def._config, errorFormatter: () => undefined };
  return { _def: { ...router._def, _config, procedures: { only: procedureStub } }, createCaller };
}

/** Shared by all requests: the handler checks the media type, which admission has already done. */
const headers = new Map([['content-type', 'application/json']]);
const neverAborted = new AbortController().signal;

class AdapterRequest {
  readonly method: string;
  readonly url: string;
  readonly context: RequestContext;
  readonly input: unknown;
  readonly headers = headers;
  readonly signal = neverAborted;
  error: Error | undefined;

  constructor(method: string, url: string, context: RequestContext, input: unknown) {
    this.method = method;
    this.url = url;
    this.context = context;
    this.input = input;
  }
}
Object.setPrototypeOf(AdapterRequest.prototype, Request.prototype);

/** The response as the handler writes it. */
class AdapterResponse {
  statusCode = 200;
  headers: Record<string, string> | undefined;
  /** JSON; undefined for an operation without output. */
  body: string | undefined;

  setHeader(name: string, value: string): void {
    if (name === 'Content-Type') return;
    this.headers ??= {};
    this.headers[name] = value;
  }

  end(body: string | undefined): void {
    this.body = body;
  }
}
