import { run, runTool } from './run-tool.js';

/* Everything that must pass before a change is merged, quick checks first. */
run(process.execPath, ['scripts/build.js', '--check']);
runTool('@biomejs/biome', ['check', '--error-on-warnings']);
// The build has already checked src.
for (const project of ['test', 'examples/storefront']) runTool('typescript-native', ['--project', project]);
runTool('knip', []);
run(process.execPath, ['scripts/lint-openapi.js']);
run(process.execPath, ['scripts/check-compatibility.js']);
run('npm', ['run', '--silent', 'test:all']);
