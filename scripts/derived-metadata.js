import { readdirSync, readFileSync } from 'node:fs';

const LOCK = 'package-lock.json';
const SCOPE = '@animal-store/';
const PACKAGES = readdirSync('packages')
  .filter((name) => name !== 'prisma-dev-stub')
  .map((name) => `packages/${name}`);
const RULES = 'docs/monitoring/alerts.yaml';
const RULE_TESTS = 'docs/monitoring/alerts.test.yaml';
const PROMETHEUS_RULE = `# alerts.yaml for the Prometheus operator, made by npm run docs:update.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: animal-store
  labels: { app.kubernetes.io/name: animal-store }
spec:
`;

/**
 * Every file that repeats the version or the repository's address of package.json, and the copy of the alert rules: its
 * path, and its up-to-date text.
 *
 * @returns {Record<string, string>}
 */
export function deriveMetadata() {
  const { version, repository } = readJson('package.json');
  const address = repository.url.replaceAll(/^git\+|\.git$/g, '');
  const linkBack = (path) => read(path).replaceAll(/(?<=url: )\S+(?=\/blob\/)/g, address);
  const nameImage = (path) => read(path).replaceAll(/(?<=image: \S+\/animal-store:)\S+/g, version);
  const nameTarball = (path) =>
    read(path).replaceAll(
      /(?<=animal-store-(?:batch-loader|client|client-core|compatibility|embedded-postgres|http-server|limits|platform|tools)-)\d[\w.-]*(?=\.tgz)/g,
      version,
    );
  const describe = (folder) => {
    const manifest = withVersion(readJson(`${folder}/package.json`), version);
    // Packages that leave this repository say where they are from.
    const origin = manifest.repository && { repository: { ...repository, directory: folder } };
    return toJson({ ...manifest, ...origin });
  };

  const lock = withVersion(readJson(LOCK), version);
  for (const folder of ['', ...PACKAGES]) withVersion(lock.packages[folder], version);

  const rules = linkBack(RULES);
  return {
    ...Object.fromEntries(PACKAGES.map((folder) => [`${folder}/package.json`, describe(folder)])),
    [LOCK]: toJson(lock),
    ...derive(['docs/deploy/kubernetes.yaml', 'docs/deploy/kubernetes-migrate.yaml'], nameImage),
    ...derive(
      ['docs/guides/07-typescript.md', ...PACKAGES.map((folder) => `${folder}/README.md`)],
      nameTarball,
    ),
    ...derive(['.github/ISSUE_TEMPLATE/config.yml', RULE_TESTS], linkBack),
    [RULES]: rules,
    'docs/monitoring/prometheus-rule.yaml': toPrometheusRule(rules),
  };
}

/** Sets the version of a manifest, and the versions of this repository's packages among its dependencies. */
function withVersion(manifest, version) {
  const { dependencies = {} } = manifest;
  for (const [name, range] of Object.entries(dependencies))
    if (name.startsWith(SCOPE) && !range.startsWith('file:')) dependencies[name] = version;
  manifest.version = version;
  return manifest;
}

function toPrometheusRule(rules) {
  return `${PROMETHEUS_RULE}${rules.slice(rules.indexOf('groups:')).replaceAll(/^(?=.)/gm, '  ')}`;
}

function derive(paths, change) {
  return Object.fromEntries(paths.map((path) => [path, change(path)]));
}

function read(path) {
  return readFileSync(path, 'utf8');
}

function readJson(path) {
  return JSON.parse(read(path));
}

function toJson(value) {
  return `${JSON.stringify(value, null, 2)}\n`;
}
