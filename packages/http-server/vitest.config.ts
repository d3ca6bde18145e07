import { defineConfig } from 'vitest/config';

/** For `npm test` in this folder, which needs nothing of the repository around it but the installed packages. */
export default defineConfig({ test: { include: ['test/**/*.test.ts'], testTimeout: 60_000 } });
