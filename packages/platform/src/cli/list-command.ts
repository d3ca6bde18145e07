import { z } from 'zod';
import type { Definition } from '../definition/definition.js';
import type { ListedKey } from '../keys/api-key.js';
import { KEY_STATES } from '../keys/api-key.js';
import type { KeyFilter } from '../keys/statements.js';
import type { KeyStore } from '../keys/store.js';
import { escapeControls } from '../process/terminal-text.js';
import * as parse from './arguments.js';
import { defineCommand } from './key-command.js';
import { formatKeyRows, toKeyJson, toKeyRow } from './key-view.js';
import { plan, planExample } from './store-arguments.js';

/** About 10 MB. For each page, PostgreSQL reads all keys. */
const PAGE_KEYS = 10_000;

export const createListCommand = (definition: Definition) =>
  defineCommand({
    name: 'list',
    description: 'show all keys, or those that match all given options',
    examples: [
      '',
      '--owner acme',
      '--state active --unused-for 90d',
      `--plan ${planExample(definition, 2)} --json`,
    ],
    input: z.strictObject({
      plan: plan(definition).optional().describe('only keys of this plan'),
      state: z.enum(KEY_STATES).meta({ value: '<state>' }).optional().describe('only keys in this state'),
      unusedFor: parse.duration
        .optional()
        .describe('only keys that are older, and were not used for so long'),
      owner: parse.owner.describe('only keys of this owner'),
    }),
    async run({ store }, { unusedFor, ...options }, { json }) {
      const now = Date.now();
      const unusedSince = unusedFor === undefined ? undefined : new Date(now - unusedFor * 1000);
      const pages = readPages(store, { ...options, at: new Date(now), unusedSince });
      return { parts: json ? toJson(definition, pages, now) : toTable(definition, pages, now) };
    },
  });

async function* readPages(store: KeyStore, filter: KeyFilter): AsyncIterable<readonly ListedKey[]> {
  let page: readonly ListedKey[] = [];
  do {
    page = await store.list({ ...filter, after: page.at(-1) }, PAGE_KEYS);
    yield page;
  } while (page.length === PAGE_KEYS);
}

/** An array on one line */
async function* toJson(
  definition: Definition,
  pages: AsyncIterable<readonly ListedKey[]>,
  now: number,
): AsyncIterable<string> {
  let separator = '[';
  for await (const page of pages) {
    if (page.length === 0) continue;
    yield separator +
      page.map((apiKey) => escapeControls(JSON.stringify(toKeyJson(definition, apiKey, now)))).join(',');
    separator = ',';
  }
  yield separator === '[' ? '[]\n' : ']\n';
}

/** Column widths are known only at the end; until then only the cells are kept. */
async function* toTable(
  definition: Definition,
  pages: AsyncIterable<readonly ListedKey[]>,
  now: number,
): AsyncIterable<string> {
  const rows: (readonly string[])[] = [];
  for await (const page of pages) for (const apiKey of page) rows.push(toKeyRow(definition, apiKey, now));
  yield `${formatKeyRows(rows)}\n`;
}
