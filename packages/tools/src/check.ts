import {
  checkMigrations,
  listPlatformFiles,
  prismaFolderOf,
  toInstalledCommands,
} from '@animal-store/platform/development';
import { checkDocument, type Finding } from './document.js';
import { findGap, isClosed } from './gap.js';
import { findDrift } from './schema-difference.js';
import type { Store } from './store.js';

/**
 * Compares what has to agree in a store: the platform's files, migrations, schema.prisma, the definition, the document and its
 * last release. Changes nothing.
 *
 * @param url of a server on which a database may be created for a moment
 */
export async function check(store: Store, url: string) {
  const files = await checkPlatformFiles(store);
  // Compared with models that are out of date, the migrations would seem to have too much.
  const migrated = files.isGreen ? await checkMigrated(store, url) : [];
  const findings = [files, ...migrated, ...checkDocument(store)];
  const lines = findings.map(
    ({ isGreen, line }) => `${isGreen ? 'ok ' : 'RED'}  ${line.replaceAll('\n', '\n     ')}`,
  );
  return {
    lines: lines.map((line) => toInstalledCommands(store.root, line)),
    isGreen: findings.every(({ isGreen }) => isGreen),
  };
}

async function checkPlatformFiles({ definition }: Store): Promise<Finding> {
  const paths = await listPlatformFiles(prismaFolderOf(definition.root), definition);
  return paths.length === 0
    ? {
        isGreen: true,
        line: 'prisma/ has what the installed platform brings, with the plans and scopes of the definition.',
      }
    : {
        isGreen: false,
        line: `prisma/ lacks what the installed platform and the definition say (${paths.join(', ')}): write it with: npm run platform, and check again what the migrations lack`,
      };
}

async function checkMigrated(store: Store, url: string): Promise<Finding[]> {
  const gap = await findGap(store, url);
  const draft = `draft it with: ${store.commandOf('draft')} NAME`;
  const sql = [...gap.values, ...gap.statements].join('\n');
  return [
    isClosed(gap)
      ? { isGreen: true, line: 'The migrations have all that schema.prisma and the definition say.' }
      : {
          isGreen: false,
          line: `The migrations lack what schema.prisma and the definition say: ${draft}\n${sql}`,
        },
    ...(gap.uncreated.length === 0
      ? []
      : [
          {
            isGreen: false,
            line: `The grants of the definition name ${gap.uncreated.join(', ')}, which no migration creates: take it out there, or add its model to prisma/schema.prisma, and ${draft}`,
          },
        ]),
  ];
}

/** How the database of the service differs from schema.prisma; undefined if it does not. */
export async function describeDrift(
  { definition }: Store,
  { url, database }: { readonly url: string; readonly database: Parameters<typeof checkMigrations>[1] },
): Promise<string | undefined> {
  await checkMigrations(definition.root, database);
  const drift = await findDrift(url, prismaFolderOf(definition.root));
  return (
    drift && `These changes would make the database agree with prisma/schema.prisma:\n${drift.trimEnd()}`
  );
}
