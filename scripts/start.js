/*
 * `npm start`: brings the build up to date, and runs the service in the same process. A second process would take
 * another 0.1 s.
 */
import './build.js';

// Otherwise trpc-to-openapi checks the router by generating documents, which takes 30 ms. The tests and `npm run dev` allow
// that.
process.env.NODE_ENV ??= 'production';
await import('../dist/main.js');
