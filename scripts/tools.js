/*
 * Brings the build and the tools up to date, and runs the tools in the same process: `node scripts/tools.js draft NAME` is
 * `store-tools draft NAME` where the package is installed.
 */
import './build.js';
import { runTool } from './run-tool.js';

runTool('typescript-native', ['--build', 'packages/tools'], { stdio: ['ignore', 2, 2] });
await import('../packages/tools/dist/command.js');
