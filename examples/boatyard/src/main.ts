import { run } from '@animal-store/platform';
import { definition } from './definition.js';
import { resources } from './router.js';

await run({ definition, resources });
