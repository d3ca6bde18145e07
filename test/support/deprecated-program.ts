import { run } from '../../packages/platform/src/run.js';
import { deprecated } from './deprecated-operation.js';
import { resources } from './operations-under-test.js';

/** The service with a deprecated operation, which the store may not have. */
await run({ resources: [...resources, deprecated.resource] });
