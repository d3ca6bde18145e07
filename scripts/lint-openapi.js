import { runTool } from './run-tool.js';

const DOCUMENT = 'docs/openapi.json';
const environment = { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' };
const ruleset = ['--ruleset', 'docs/spectral.yaml', '--fail-severity', 'hint'];

runTool('@redocly/cli', ['lint', '--config', 'docs/redocly.yaml', DOCUMENT], { environment });
runTool('@stoplight/spectral-cli', ['lint', ...ruleset, DOCUMENT]);
