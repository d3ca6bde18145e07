import { parseArgs } from 'node:util';
import { installFolder } from './install.js';
import { run, runCheckingTool, runTool } from './run-tool.js';

/*
 * `npm run check`: everything that must hold before a change is merged, except for the tests. The quickest steps come
 * first.
 *
 * npm run check -- --fix         lets Biome mend what it can
 * npm run check -- lint types    only these steps
 */
const DOCUMENT = 'docs/openapi.json';
/** Folders with packages of their own. */
const FOLDERS = ['bench', 'examples/storefront'];

const STEPS = {
  build: () => run(process.execPath, ['scripts/build.js', '--check']),
  lint: ({ fix }) =>
    runCheckingTool('@biomejs/biome', ['check', '--error-on-warnings', ...(fix ? ['--write'] : [])]),
  // The build checks the types of src.
  types() {
    // The types that third parties generate, with which a test is compiled.
    runCheckingTool('openapi-typescript', [DOCUMENT, '--output', 'test/support/openapi-types.ts']);
    for (const folder of FOLDERS) installFolder(folder);
    run(process.execPath, ['scripts/boatyard.js']);
    for (const project of ['test', 'packages/platform/test', 'examples/boatyard/test', ...FOLDERS])
      runTool('typescript-native', ['--project', project]);
  },
  unused() {
    for (const folder of FOLDERS) installFolder(folder);
    runCheckingTool('knip', []);
  },
  openapi: lintDocument,
  /** Migrations, schema.prisma, the definition, the document, and that of the last release, on a PostgreSQL of its own. */
  store: () => run(process.execPath, ['scripts/tools.js', 'check']),
};

const { steps, fix } = readArguments();
for (const step of steps) STEPS[step]({ fix });

function lintDocument() {
  const environment = { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' };
  runCheckingTool('@redocly/cli', ['lint', '--config', 'docs/redocly.yaml', DOCUMENT], { environment });
  const ruleset = ['--ruleset', 'docs/spectral.yaml', '--fail-severity', 'hint'];
  runCheckingTool('@stoplight/spectral-cli', ['lint', ...ruleset, DOCUMENT]);
}

/** All steps if none is named. */
function readArguments() {
  try {
    const options = { fix: { type: 'boolean', default: false } };
    const { values, positionals } = parseArgs({ options, allowPositionals: true });
    const unknown = positionals.find((name) => !Object.hasOwn(STEPS, name));
    if (unknown) throw new Error(`There is no step "${unknown}".`);
    return { ...values, steps: positionals.length > 0 ? positionals : Object.keys(STEPS) };
  } catch (error) {
    const usage = `Usage: npm run check -- [--fix] [${Object.keys(STEPS).join(' | ')}] …`;
    process.stderr.write(`${error.message}\n${usage}\n`);
    process.exit(2);
  }
}
