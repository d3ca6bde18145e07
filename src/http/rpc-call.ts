import type { FastifyRequest } from 'fastify';

declare module 'fastify' {
  interface FastifyRequest {
    /** What the address says of a tRPC request, once it was asked for */
    rpcCall: RpcCall | null;
  }
}

export interface RpcCall {
  /** The procedures called, read as tRPC reads them, so that what is counted is what will run */
  readonly names: readonly string[];
  readonly isBatch: boolean;
  /** As the address has it: the JSON of a query's input */
  readonly input: string | null;
  /** Whether the address holds what the handshake of a WebSocket would */
  readonly hasConnectionParams: boolean;
}

/** The path below the prefix, decoded */
export function readPath(request: FastifyRequest): string {
  return (request.params as { path: string }).path;
}

/** What is called, read once however often it is asked for. */
export function readCall(request: FastifyRequest): RpcCall {
  request.rpcCall ??= parseCall(request);
  return request.rpcCall;
}

function parseCall(request: FastifyRequest): RpcCall {
  const path = readPath(request);
  const query = request.query as URLSearchParams;
  const isBatch = query.get('batch') === '1';
  return {
    names: isBatch ? path.split(',') : [path],
    isBatch,
    input: query.get('input'),
    hasConnectionParams: query.has('connectionParams'),
  };
}
