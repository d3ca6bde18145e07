/**
 * How many interleavings a model test tries: `npm run test:all` sets MODEL_RUNS to more. When one fails, fast-check prints the
 * seed and the path, and `fc.assert(property, { seed, path })` tries that one again.
 */
export const MODEL_RUNS = Number(process.env.MODEL_RUNS ?? 100);
