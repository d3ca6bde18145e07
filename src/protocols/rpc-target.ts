import type { FastifyRequest } from 'fastify';

declare module 'fastify' {
  interface FastifyRequest {
    /** Read from the URL of a tRPC request when it is first needed. */
    rpcTarget: RpcTarget | null;
  }
}

/** The calls in a URL, parsed the way tRPC parses them, so that exactly the calls that are counted are run. */
export interface RpcTarget {
  readonly names: readonly string[];
  readonly isBatch: boolean;
  /** JSON: the input of a query. */
  readonly input: string | null;
  /** Whether it carries the parameters of a WebSocket handshake. */
  readonly hasConnectionParams: boolean;
}

export function readTarget(request: FastifyRequest): RpcTarget {
  if (request.rpcTarget !== null) return request.rpcTarget;
  const { path } = request.params as { path: string };
  const query = request.query as URLSearchParams;
  const isBatch = query.get('batch') === '1';
  request.rpcTarget = {
    names: isBatch ? path.split(',') : [path],
    isBatch,
    input: query.get('input'),
    hasConnectionParams: query.has('connectionParams'),
  };
  return request.rpcTarget;
}
