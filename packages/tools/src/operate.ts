import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Definition } from '@animal-store/platform/definition';

/** The files of a store called my-store: the top ones belong into its folder */
const TEMPLATES = fileURLToPath(new URL('../operate/', import.meta.url));
const PACKAGE = new URL('../package.json', import.meta.url);
const PLATFORM = 'node_modules/@animal-store/platform';
const RULE = 'monitoring/prometheus-rule.yaml';
/** What a template says of its store, and which documents and files it names */
const NAMES =
  /my-runbooks#mystore(?<alert>[a-z]+)|docs\/(?<document>\w+\.md)|docs(?=\/(?:deploy|monitoring)\/)|my-(?:version|plan|store)|my_(?:metrics_|store)|MyStore|My Store/g;

interface Options {
  /** Of the files, from the folder of the store */
  readonly folder: string;
  /** What alerts link to: the file of the store's own runbooks, from its folder, or the address of their page */
  readonly runbooks: string;
}

interface Manifest {
  readonly version?: string;
  readonly repository?: string | { readonly url: string };
}

/**
 * What a store is run with, under its own names: alerts, dashboard, roles, units of systemd, manifests of Kubernetes, Compose's
 * file and a Dockerfile, unless the store has one of its own.
 *
 * @returns the texts by their paths, from the folder of the store
 */
export function deriveOperations(definition: Definition, options: Options): Readonly<Record<string, string>> {
  const paths = readdirSync(TEMPLATES, { recursive: true, encoding: 'utf8', withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => relative(TEMPLATES, join(parentPath, name)))
    .sort();
  const templates = Object.fromEntries(
    paths.map((path) => [path, readFileSync(join(TEMPLATES, path), 'utf8')]),
  );
  const { 'monitoring/alerts.yaml': alerts = '' } = templates;
  templates[RULE] += alerts.slice(alerts.indexOf('groups:')).replaceAll(/^(?=.)/gm, '  ');
  if (hasOwnImage(definition.root, templates)) {
    delete templates.Dockerfile;
    delete templates['.dockerignore'];
  }
  const rename = createRenaming(definition, options);
  return Object.fromEntries(
    Object.entries(templates).map(([path, text]) => [
      join(path.includes('/') ? options.folder : '', rename(path, path)),
      rename(text, path),
    ]),
  );
}

/** Whether there is a Dockerfile without the first line of that which these tools write */
function hasOwnImage(root: URL, { Dockerfile = '' }: Readonly<Record<string, string>>): boolean {
  const path = new URL('Dockerfile', root);
  const [mark = ''] = Dockerfile.split('\n', 1);
  return existsSync(path) && !readFileSync(path, 'utf8').startsWith(mark);
}

/** Writes what the folder lacks of the files, or has otherwise. Returns a line for each. */
export function writeOperations(definition: Definition, options: Options): string[] {
  return Object.entries(deriveOperations(definition, options)).flatMap(([path, text]) => {
    const file = fileURLToPath(new URL(path, definition.root));
    if (existsSync(file) && readFileSync(file, 'utf8') === text) return [];
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    return [`wrote ${path}`];
  });
}

/** The function that says in a text what it says of my-store of another store, as the kind of file takes it. */
function createRenaming({ root, identity, developmentPlan }: Definition, { folder, runbooks }: Options) {
  const { name, title, metricsPrefix } = identity;
  const hasFile = (path: string) => existsSync(new URL(path, root));
  const manifest = readManifest(new URL('package.json', root));
  const pascal = name.replaceAll(/(?:^|-)(.)/g, (_, first: string) => first.toUpperCase());
  const names: Readonly<Record<string, string>> = {
    docs: folder,
    'my-store': name,
    my_store: name.replaceAll('-', '_'),
    MyStore: pascal,
    my_metrics_: metricsPrefix,
    'my-plan': developmentPlan,
    'my-version': manifest.version ?? 'latest',
  };
  const linkTo = createRunbookLink(root, runbooks);
  return (text: string, path: string) =>
    text.replaceAll(NAMES, (match, alert?: string, document?: string) => {
      if (alert !== undefined) return linkTo(pascal.toLowerCase(), alert);
      // The dashboard is read in a browser, and a comment in an editor.
      if (document !== undefined)
        return hasFile(match) ? match : `${path.endsWith('.json') ? findPage() : PLATFORM}/${match}`;
      return names[match] ?? quote(title, path);
    });
}

/**
 * An alert links to the store's own runbooks if it has some, and else to the platform's, as of the installed version. Their sections
 * have the names of alerts, the platform's without that of a store.
 */
function createRunbookLink(root: URL, runbooks: string) {
  const own = findRunbooks(root, runbooks);
  if (own) return (prefix: string, alert: string) => `${own}#${prefix}${alert}`;
  return (_prefix: string, alert: string) => `${findPage()}/docs/runbooks.md#${alert}`;
}

/** The address of the store's own runbooks, if there is one */
function findRunbooks(root: URL, runbooks: string): string | undefined {
  if (runbooks.startsWith('https://')) return runbooks;
  if (!existsSync(new URL(runbooks, root))) return undefined;
  const address = addressOf(readManifest(new URL('package.json', root)).repository);
  return address && `${address}/blob/main/${runbooks}`;
}

/** Whether alerts lead to runbooks of the store, which its operators can open, rather than to the platform's. */
export const hasOwnRunbooks = ({ root }: Definition, runbooks: string) =>
  findRunbooks(root, runbooks) !== undefined;

/** The page of the platform, as of the version of these tools */
function findPage(): string {
  const { version, repository } = readManifest(PACKAGE);
  return `${addressOf(repository)}/blob/v${version}/packages/platform`;
}

/** The page of a repository; undefined if it is none that a browser opens */
function addressOf(repository: Manifest['repository']): string | undefined {
  const url = typeof repository === 'string' ? repository : repository?.url;
  return /^(?:git\+)?(https:\/\/.+?)(?:\.git)?$/.exec(url ?? '')?.[1];
}

/** A title where a file quotes it, or where % begins a specifier */
function quote(title: string, path: string): string {
  if (path.endsWith('.service')) return title.replaceAll('%', '%%');
  const quoted = JSON.stringify(title).slice(1, -1);
  return path.endsWith('Dockerfile') ? quoted.replaceAll('$', '\\$') : quoted;
}

const readManifest = (path: URL): Manifest => JSON.parse(readFileSync(path, 'utf8'));
