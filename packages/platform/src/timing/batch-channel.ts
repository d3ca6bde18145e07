import { IDENTITY } from '@animal-store/definition/identity';

/** The name of the diagnostics channels of all batches, for tracing */
export const BATCH_CHANNEL = `${IDENTITY.name}.batch`;
