import '../scripts/node-version.js';
import { run } from '@animal-store/platform';
import { resources } from './router.js';

await run({ resources, nextSteps: { 'npm run storefront': 'a front-end that calls the service' } });
