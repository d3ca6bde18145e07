/**
 * The service (`main`) or its command line (`cli`), as its first argument says, with a deprecated operation, which the store may
 * not have.
 */
import { runCommand } from '../../src/platform/cli/program.js';
import { run } from '../../src/platform/run.js';
import { deprecated } from './deprecated-operation.js';
import { resources } from './operations-under-test.js';

const [script] = process.argv.splice(2, 1);
const all = [...resources, deprecated.resource];
await (script === 'main' ? run({ resources: all }) : runCommand({ loadResources: async () => all }));
