/**
 * How often a model test tries: `npm run test:all` sets MODEL_RUNS to more interleavings. A machine that is so busy that they
 * would take more than a minute tries fewer. When one fails, fast-check prints the seed and the path, and
 * `fc.assert(property, { seed, path })` tries that one again.
 */
export const MODEL_RUNS = {
  numRuns: Number(process.env.MODEL_RUNS ?? 100),
  interruptAfterTimeLimit: 60_000,
};
