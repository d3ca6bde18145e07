import { mkdir, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { copyPlatformFiles, prismaFolderOf, readMigrations } from '@animal-store/platform/development';
import { findGap, type Gap, isClosed } from './gap.js';
import type { Store } from './store.js';

/**
 * Writes migrations with the SQL for what schema.prisma and the definition say and the migrations lack: one, or two where an
 * enum gains values. Before that it brings what the platform has written into prisma/ up to date.
 *
 * @param url of a server on which a database may be created for a moment
 * @returns lines about what was written, and what remains to be done
 */
export async function draft(store: Store, url: string, name: string): Promise<string[]> {
  const { definition } = store;
  const folder = prismaFolderOf(definition.root);
  const copied = await copyPlatformFiles(folder, definition);
  const gap = await findGap(store, url);
  const { values, statements } = gap;
  const scripts = [
    ...(values.length === 0
      ? []
      : [{ name: statements.length === 0 ? name : `${name}_values`, sql: values }]),
    ...(statements.length === 0 ? [] : [{ name, sql: statements }]),
  ];
  const written = await write(join(folder, 'migrations'), scripts, describeRules(gap));
  const toShown = (path: string) => `wrote ${relative(fileURLToPath(definition.root), path)}`;
  return [
    ...copied.map((path) => toShown(join(folder, path))),
    ...written.map(toShown),
    ...(isClosed(gap)
      ? ['Nothing to draft: the migrations have all that schema.prisma and the definition say.']
      : ['Complete what was drafted, as the lines at its head say. A start of the service applies it.']),
    ...describeGrants(gap),
  ];
}

/** Writes the scripts, later than the last migration. The rules are at the head of the last one. */
async function write(
  folder: string,
  scripts: readonly { readonly name: string; readonly sql: readonly string[] }[],
  rules: string,
): Promise<string[]> {
  const last = (await readMigrations(folder)).at(-1);
  const first = chooseTime(last?.name);
  const paths: string[] = [];
  for (const [index, { name, sql }] of scripts.entries()) {
    const path = join(folder, `${first + index}_${name}`);
    await mkdir(path);
    const head =
      index === scripts.length - 1
        ? rules
        : '-- Apart from what follows, because a transaction that adds a value cannot use it.\n';
    paths.push(join(path, 'migration.sql'));
    await writeFile(join(path, 'migration.sql'), `${head}${sql.join('\n\n')}\n`);
  }
  return paths;
}

/** The time now, as in migrations' names, and later than that of the last migration. */
function chooseTime(last = ''): number {
  const now = new Date().toISOString().replaceAll(/\D/g, '').slice(0, 14);
  return Math.max(Number(now), Number.parseInt(last, 10) + 1 || 0);
}

/** A column that Prisma's script adds without a value for the rows that are there */
const REQUIRED_COLUMN = /ADD COLUMN +"([^"]+)" (?!.* DEFAULT ).* NOT NULL/g;

/** What a draft cannot contain, as comments. */
function describeRules(gap: Gap): string {
  const { values, statements, created, removed, scopes, failure } = gap;
  const required = [...statements.join('\n').matchAll(REQUIRED_COLUMN)].map(([, name]) => name);
  const rules = [
    ...(failure === undefined ? [] : [`It does not run as it is: ${failure.replaceAll(/\s+/g, ' ')}.`]),
    ...(required.length === 0
      ? []
      : [
          `It fails where the table has rows, which would have no value: give ${required.join(', ')} a DEFAULT.`,
        ]),
    ...(removed.length === 0
      ? []
      : [`It fails while a key has the plan ${removed.join(' or ')}: give such keys another one before.`]),
    `CHECK constraints for what the schemas of inputs promise${created.length > 0 ? ` of ${created.join(', ')}` : ''}: lengths, bounds, "not only white space".`,
    'A table into which transactions alone insert (takeTurn): INSERT INTO "insert_turns" VALUES (\'the_table\');',
    ...describeGrants(gap),
    ...(scopes.length === 0
      ? []
      : [
          `Existing keys get a scope only here: UPDATE "api_keys" SET "scopes" = "scopes" || ARRAY['${scopes.join("', '")}'];`,
        ]),
    ...(values.length === 0
      ? []
      : [
          'Nodes of the previous version fail on a value that they do not know: write it once all run this version.',
        ]),
    'Nodes of the previous version go on running: a new column has a default or is NULL, none goes that they use, and what they write satisfies a new constraint.',
    'CREATE INDEX CONCURRENTLY on a large table, alone in a migration: a plain CREATE INDEX makes writes wait.',
  ];
  const title =
    '-- A draft: what the migrations lack of schema.prisma and the definition. Add what neither says, and delete these lines.';
  return `${[title, '--', ...rules.map((rule) => `-- * ${rule}`)].join('\n')}\n\n`;
}

function describeGrants({ ungranted }: Gap): string[] {
  if (ungranted.length === 0) return [];
  const [first = ''] = ungranted;
  return [
    `The grants of the definition lack ${ungranted.join(', ')}: add what the service's statements need, such as ${first}: ['SELECT', 'INSERT', 'UPDATE'].`,
  ];
}
