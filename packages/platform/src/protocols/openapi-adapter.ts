import type { AnyTRPCProcedure, AnyTRPCRouter } from '@trpc/server';
import { createOpenApiNodeHttpHandler } from 'trpc-to-openapi';
import { z } from 'zod';
import type { RequestContext } from '../operations/builder.js';
import type { Operation } from '../operations/list-operations.js';

/**
 * Runs operations through trpc-to-openapi's handler for node:http. The project requires that REST goes through this library at
 * run time, too. Without that, rest.ts would call the procedure and write its output as JSON, for 0.83 to 1.00 of the CPU per
 * request, and this file would go.
 *
 * Fastify has found the route and read the input; the handler finds the procedure, creates its caller, runs it, and writes the
 * output as JSON.
 *
 * The library is kept from three things:
 * - Coercing input. It would read query and body again, and change the input schemas so that they accept strings for numbers,
 *   over tRPC, too. So the handler sees inputs as `void`, and the real input reaches the procedure through the exchange.
 * - Writing its own error body. The procedure's error is thrown out of the handler.
 * - Building a web Request per call, which costs more than the rest of its work. It builds none for an `instanceof Request`.
 */

/** One operation, ready to run. Throws whatever the procedure throws. */
export type OpenApiHandler = (context: RequestContext, input: unknown) => Promise<OpenApiResult>;

interface OpenApiResult {
  readonly output: unknown;
  /** The output as JSON; undefined for an operation without output. */
  readonly json: string | undefined;
}

type HandlerOptions = Parameters<typeof createOpenApiNodeHttpHandler>[0];

export function createOpenApiHandler(
  router: AnyTRPCRouter,
  { name, method, path }: Operation,
): OpenApiHandler {
  const procedure = router._def.procedures[name] as AnyTRPCProcedure;
  const { type, inputs } = procedure._def as AnyTRPCProcedure['_def'] & { inputs: unknown[] };
  const procedureStub = { _def: { ...procedure._def, inputs } };
  const options = {
    // A router of one procedure. Its caller replaces tRPC's, which builds a chain of proxies for each call.
    router: {
      _def: { ...router._def, procedures: { only: procedureStub } },
      createCaller: ({ call }: RestExchange) => ({ only: call }),
    },
    createContext: ({ req }: { req: RestExchange }) => req,
    onError({ error }: { error: Error }) {
      throw error;
    },
  };
  const handle = createOpenApiNodeHttpHandler(options as unknown as HandlerOptions) as unknown as (
    request: RestExchange,
    response: RestExchange,
  ) => Promise<void>;
  procedureStub._def.inputs = [z.void()];
  // The handler finds its one procedure by method and path. Any path that matches the template will do.
  const url = path.replaceAll(/[{}]/g, '');
  return async (ctx, input) => {
    const getRawInput = async () => input;
    const exchange: RestExchange = new RestExchange(method, url, async () => {
      const call = { ctx, path: name, type, getRawInput, signal: neverAborted, batchIndex: 0 };
      exchange.output = await procedure(call);
      return exchange.output;
    });
    await handle(exchange, exchange);
    return exchange;
  };
}

/** Shared by all requests. The handler checks the media type, but admission already has. */
const headers = new Map([['content-type', 'application/json']]);
const neverAborted = new AbortController().signal;

/** The request as the handler reads it, and the response as it writes it. */
class RestExchange implements OpenApiResult {
  readonly method: string;
  readonly url: string;
  readonly headers = headers;
  readonly signal = neverAborted;
  readonly call: () => Promise<unknown>;
  /** Written by the handler, but not sent: status and headers are those of the operation. */
  statusCode = 200;
  output: unknown;
  json: string | undefined;

  constructor(method: string, url: string, call: () => Promise<unknown>) {
    this.method = method;
    this.url = url;
    this.call = call;
  }

  setHeader(): void {}

  end(json: string | undefined): void {
    this.json = json;
  }
}
Object.setPrototypeOf(RestExchange.prototype, Request.prototype);
