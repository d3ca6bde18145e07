import { createRequire } from 'node:module';
import { join } from 'node:path';
import { run, runTool } from './run-tool.js';

/*
 * Builds the client before npm packs it. Its types come from the router, whose sources need the Prisma client. Messages go
 * to standard error: the standard output of `npm pack` is the name of the tarball.
 */
const stdio = ['ignore', 2, 2];

process.chdir(join(import.meta.dirname, '..'));
runTool('prisma', ['generate'], { stdio });
process.chdir('packages/client');
// The client has a Rollup of its own beside that of another tool.
const rollup = createRequire(join(process.cwd(), 'package.json')).resolve('rollup/dist/bin/rollup');
run(process.execPath, [rollup, '--config'], { stdio });
