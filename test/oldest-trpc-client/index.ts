// From this folder's own node_modules.
export { createTRPCUntypedClient, httpBatchStreamLink } from '@trpc/client';
