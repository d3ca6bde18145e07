/** The name of the diagnostics channels of all batches, for tracing */
export const BATCH_CHANNEL = 'animal-store.batch';
