import '../scripts/node-version.js';
import './platform/cli/program.js';
