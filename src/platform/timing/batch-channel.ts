import { IDENTITY } from '#store/identity.js';

/** The name of the diagnostics channels of all batches, for tracing */
export const BATCH_CHANNEL = `${IDENTITY.name}.batch`;
