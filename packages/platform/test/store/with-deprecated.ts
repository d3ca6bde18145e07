import { run } from '@animal-store/platform';
import { deprecated } from './deprecated.js';
import { resources } from './router.js';

/** The service with a deprecated operation as well */
await run({ resources: [...resources, deprecated.resource] });
