import { readdirSync, readFileSync } from 'node:fs';

const LOCK = 'package-lock.json';
const SCOPE = '@animal-store/';
const PACKAGES = readdirSync('packages')
  .filter((name) => name !== 'prisma-dev-stub')
  .map((name) => `packages/${name}`);

/**
 * Every file that repeats the version or the repository's address of package.json: its path, and its up-to-date text. Those for
 * operators are written by `store-tools operate`.
 *
 * @returns {Record<string, string>}
 */
export function deriveMetadata() {
  const { version, repository } = readJson('package.json');
  const address = repository.url.replaceAll(/^git\+|\.git$/g, '');
  const linkBack = (path) => read(path).replaceAll(/(?<=url: )\S+(?=\/blob\/)/g, address);
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

  return {
    ...Object.fromEntries(PACKAGES.map((folder) => [`${folder}/package.json`, describe(folder)])),
    [LOCK]: toJson(lock),
    ...derive(
      ['docs/guides/07-typescript.md', ...PACKAGES.map((folder) => `${folder}/README.md`)],
      nameTarball,
    ),
    ...derive(['.github/ISSUE_TEMPLATE/config.yml'], linkBack),
  };
}

/** Sets the version of a manifest, and the versions of this repository's packages among its dependencies. */
function withVersion(manifest, version) {
  for (const kind of [manifest.dependencies, manifest.devDependencies, manifest.peerDependencies])
    for (const [name, range] of Object.entries(kind ?? {}))
      if (name.startsWith(SCOPE) && !range.startsWith('file:')) kind[name] = version;
  manifest.version = version;
  return manifest;
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
