import { run } from '@animal-store/platform';
import { definition } from './definition/definition.js';
import { createDeprecated } from './deprecated.js';
import { resources } from './router.js';

/** The service with a deprecated operation as well */
await run({ definition, resources: [...resources, createDeprecated(definition).resource] });
