import { run } from '@animal-store/platform';
import { createDeprecated } from './deprecated-operation.js';
import { definition, resources } from './operations-under-test.js';

/** The service with a deprecated operation as well */
await run({ definition, resources: [...resources, createDeprecated(definition).resource] });
