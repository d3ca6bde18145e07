import '../scripts/node-version.js';
import { run } from './platform/run.js';
import { resources } from './router.js';

await run({ resources, nextSteps: { 'npm run storefront': 'a front-end that calls the service' } });
