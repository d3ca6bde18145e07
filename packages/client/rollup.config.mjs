import typescript from '@rollup/plugin-typescript';
import { dts } from 'rollup-plugin-dts';

const input = 'src/create-client.ts';
// tRPC is a peer dependency: a front-end that uses it itself, for example with TanStack Query, needs the same copy.
const external = /^@trpc\//;

// Editors read comments from the declarations, and pages should not load them.
const code = typescript({ removeComments: true });

/** One module and one declaration file, neither of which refers to the service's sources. */
export default [
  { input, external, plugins: [code], output: { file: 'dist/client.js' } },
  { input, external, plugins: [dts()], output: { file: 'dist/client.d.ts' } },
];
