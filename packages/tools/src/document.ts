import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { compareDocuments, type Document, DocumentError, describeChanges } from '@animal-store/compatibility';
import { describeService, OperatorError } from '@animal-store/platform/development';
import type { Store } from './store.js';

/** Something that was checked: what there is to say, and whether it is as it should be. */
export interface Finding {
  readonly isGreen: boolean;
  readonly line: string;
}

/** The document of the store's operations, as its command line would write it to the address of the one that is kept. */
function build({ definition, resources }: Store, kept: Partial<Document> = {}): Document {
  const service = describeService({ definition, resources, publicUrl: '', stagingUrl: undefined });
  const built = service.document as Document & { readonly info: object };
  const { servers, info } = kept as { servers?: unknown; info?: { contact?: unknown } };
  // Where the service is reached is the configuration's to say.
  const document = { ...built, servers, info: { ...built.info, contact: info?.contact } };
  return JSON.parse(JSON.stringify(document));
}

/** Whether the document that the store keeps is that of its operations, and breaks nothing that the last release has promised. */
export function checkDocument(store: Store): Finding[] {
  const { settings } = store;
  const path = store.pathOf('document');
  const write = `npm run -s openapi >${settings.document}`;
  const kept = existsSync(path) ? read(path) : undefined;
  const document = build(store, kept);
  const agrees = isDeepStrictEqual(kept, document);
  const hint = 'docs:update' in store.scripts ? 'npm run docs:update' : write;
  return [
    {
      isGreen: kept === undefined || agrees,
      line:
        kept === undefined
          ? `There is no ${settings.document}, so nothing is compared with it. To keep one: ${write}`
          : agrees
            ? `${settings.document} is the document of the operations.`
            : `${settings.document} is not the document of the operations: write it with: ${hint}`,
    },
    compareRelease(store, document),
  ];
}

function compareRelease(store: Store, document: Document): Finding {
  const { releases } = store.settings;
  const folder = store.pathOf('releases');
  const names = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.json')) : [];
  const last = names.sort((a, b) => a.localeCompare(b, 'en', { numeric: true })).at(-1);
  if (last === undefined)
    return {
      isGreen: true,
      line: `${releases} has no document of a release, so nothing is compared with it.`,
    };
  const comparison = compare(read(join(folder, last)), document, last);
  const { breaking, experimental } = describeChanges(comparison);
  const lines = [
    ...experimental,
    ...breaking,
    `The operations against ${join(releases, last)}: ${comparison.breaking.length} breaking changes`,
  ];
  if (breaking.length > 0)
    lines.push('Take them back, or offer the change beside what there is: no command can mend them.');
  return { isGreen: breaking.length === 0, line: lines.join('\n') };
}

function compare(before: Document, after: Document, name: string) {
  try {
    return compareDocuments(before, after, Date.now());
  } catch (error) {
    if (error instanceof DocumentError)
      throw new OperatorError(
        `The document of the operations cannot be compared with ${name}: ${error.message}`,
      );
    throw error;
  }
}

function read(path: string): Document {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new OperatorError(
      `${path} cannot be read (${(error as Error).message}): mend it, or write it anew.`,
    );
  }
}
