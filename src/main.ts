import '../scripts/node-version.js';
import { run } from './platform/run.js';
import { resources } from './router.js';

await run({ resources });
