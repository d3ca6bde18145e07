import '../scripts/node-version.js';
import { run } from '@animal-store/platform';
import { definition } from './definition/definition.js';
import { resources } from './router.js';

await run({
  definition,
  resources,
  nextSteps: { 'npm run storefront': 'a front-end that calls the service' },
});
