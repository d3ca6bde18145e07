import { defineConfig } from 'vitest/config';

/** For `npm test` in this folder, which needs only the installed packages of the repository around it. */
export default defineConfig({ test: { include: ['test/**/*.test.ts'], testTimeout: 60_000 } });
