import { join } from 'node:path';
import {
  addPlans,
  dropLimits,
  findDefinitionGap,
  findRemovedPlans,
  prismaFolderOf,
} from '@animal-store/platform/development';
import { tryScripts, withMigrated, writeDifference } from './schema-difference.js';
import type { Store } from './store.js';

/** What the migrations of a store lack of its schema.prisma and its definition. */
export interface Gap extends Awaited<ReturnType<typeof findDefinitionGap>> {
  /** SQL that adds values to enums. A transaction that adds one cannot use it. */
  readonly values: readonly string[];
  /** The rest of the SQL, in whose order it runs */
  readonly statements: readonly string[];
  /** The plans that it takes away */
  readonly removed: readonly string[];
  /** The tables that it creates */
  readonly created: readonly string[];
  /** Why the SQL does not run on what the migrations make, if it does not */
  readonly failure: string | undefined;
}

/** How a BIGSERIAL of Prisma's begins. The sequence of an identity column needs no grant, and nobody writes an id by accident. */
const SERIAL = /^( +"\w+" )(BIG|SMALL|)SERIAL NOT NULL/gm;
const INTEGERS: Readonly<Record<string, string>> = { BIG: 'BIGINT', SMALL: 'SMALLINT', '': 'INTEGER' };
/** What a number of JavaScript holds exactly */
const BOUNDS: Readonly<Record<string, string>> = { BIG: ' (MAXVALUE 9007199254740991)' };

/** A migration is a transaction already. */
const TRANSACTION = /^(?:BEGIN|COMMIT);\n/gm;
const ADDED_VALUE = /^ALTER TYPE \S+ ADD VALUE .*;$/gm;

/**
 * Applies the migrations to a temporary database on the server of a URL, and compares what they make with schema.prisma and the
 * definition.
 *
 * @throws OperatorError where the role may not create a database, or a migration fails
 */
export async function findGap({ definition, resources }: Store, url: string): Promise<Gap> {
  const folder = prismaFolderOf(definition.root);
  return withMigrated(url, join(folder, 'migrations'), async (migrated) => {
    const plans = await addPlans(definition, migrated);
    const removed = await findRemovedPlans(definition, migrated);
    const { values, rest: difference } = split((await writeDifference(migrated, folder)) ?? '');
    // Prisma replaces the type of the column, which a constraint that compares its values does not survive.
    const freed = removed.length === 0 ? '' : await dropLimits(definition, migrated);
    const rest = [freed, difference].filter(Boolean).join('\n\n');
    const failure = await tryScripts(migrated, [...values, rest]);
    const gap = await findDefinitionGap(definition, resources, migrated);
    return {
      ...gap,
      removed,
      values: [...plans, ...values],
      statements: [...(rest === '' ? [] : [rest]), ...gap.statements],
      created: [...rest.matchAll(/^CREATE TABLE "([^"]+)"/gm)].map(([, name = '']) => name),
      failure,
    };
  });
}

/** Whether the migrations make what schema.prisma and the definition say. */
export const isClosed = ({ values, statements }: Gap) => values.length === 0 && statements.length === 0;

/** Prisma's script, whose parts begin with a comment such as `-- CreateTable`. */
function split(script: string): { readonly values: readonly string[]; readonly rest: string } {
  const parts = script.split(/^(?=-- [A-Z][A-Za-z]+$)/m);
  const addsValues = (part: string) => part.match(ADDED_VALUE) !== null;
  const rest = parts.filter((part) => !addsValues(part)).join('');
  return {
    values: parts.flatMap((part) => part.match(ADDED_VALUE) ?? []),
    rest: `${rest.trim()}\n`
      .replaceAll(TRANSACTION, '')
      .trim()
      .replaceAll(SERIAL, (_, column: string, size: string) => {
        return `${column}${INTEGERS[size]} NOT NULL GENERATED ALWAYS AS IDENTITY${BOUNDS[size] ?? ''}`;
      }),
  };
}
