/** Where the REST face lives; part of every address that it hands out. */
export const REST_PREFIX = '/v1';

/** Where the tRPC face lives. */
export const RPC_PREFIX = '/trpc';
