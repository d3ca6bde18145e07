/* `npm start`: the service, in the process that has brought its build up to date. A second process would take 0.1 s. */
import cluster from 'node:cluster';

// Workers run what their primary process has built.
if (cluster.isPrimary) await import('./build.js');
await import('../dist/main.js');
