import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { definition } from '#operations-under-test';
import { nextBanSeconds } from '../../packages/platform/src/contract/bans.js';
import { IDEMPOTENCY_TTL_HOURS } from '../../packages/platform/src/contract/bounds.js';
import { MAX_BATCH_SIZE, MAX_PAGE_SIZE } from '../../packages/platform/src/contract/protocol.js';
import type { ErrorDefinition } from '../../packages/platform/src/errors/error-table.js';
import { generateKey } from '../../packages/platform/src/keys/format.js';
import { listOperations } from '../../packages/platform/src/operations/list-operations.js';
import { DEFAULT_PAGE_SIZE } from '../../packages/platform/src/operations/pagination.js';
import { createRouter } from '../../packages/platform/src/operations/resource.js';
import { readConfig } from '../../packages/platform/src/process/config.js';
import { errorOf, errorTable } from '../../packages/platform/test/support/error-table.js';
import { createChecker } from '../../packages/platform/test/support/openapi-checker.js';
import { resources } from '../../src/router.js';
import { GUIDES_FOLDER, listGuides, readCodeBlocks } from './code-blocks.js';

const MAX_WORDS = 4_200;
const MAX_WORDS_WITH_FOLDED = 5_775;

interface JsonSchema {
  readonly properties: Readonly<Record<string, { readonly maxLength?: number }>>;
}

const { document, operations } = createChecker(resources);

const names = listGuides().filter((name) => /^\d\d-/.test(name));
const guides = new Map(
  await Promise.all(
    names.map(async (name) => [name, await readFile(join(GUIDES_FOLDER, name), 'utf8')] as const),
  ),
);

function read(name: string): string {
  return guides.get(name) ?? expect.unreachable(`there is no ${name}`);
}

/** The fine print: closed on GitHub and on the page until somebody opens it */
const FOLDED = /^<details>\n<summary>[^<\n]+<\/summary>\n\n(.+?)\n\n<\/details>$/gms;

/** How many words are read: without code, and without what only marks a table or a list */
function countWords(text: string): number {
  return text.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;
}

function withoutCode(guide: string): string {
  return guide.replaceAll(/^ *```.*?^ *```$/gms, '');
}

/** As in addresses */
function listHeadings(guide: string): string[] {
  const headings = withoutCode(guide).matchAll(/^## (.+)$/gm);
  return Array.from(headings, ([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

describe.each(names)('%s', (name) => {
  const text = withoutCode(read(name));

  test('is a section of the reference page: one title, then smaller headings, and no HTML but what folds a part', () => {
    expect(text).toMatch(/^# \S/);
    expect(text.match(/^#+ /gm)?.filter((heading) => heading === '# ')).toHaveLength(1);
    const open = text.replaceAll(FOLDED, '');
    expect(open.replaceAll(/`[^`]+`/g, '')).not.toMatch(/<[a-z!/]/i);
    // Scalar and GitHub end a part at a heading, and the page has its code in tabs.
    for (const [, folded = ''] of read(name).matchAll(FOLDED)) {
      expect(folded).not.toMatch(/^(?:#|\s*```)/m);
      expect(folded.replaceAll(/`[^`]+`/g, '')).not.toMatch(/<[a-z!/]/i);
    }
  });

  test('links to nothing but other guides, and to headings that they have', () => {
    const targets = [...text.matchAll(/\]\(([^)#]*)#?([^)]*)\)/g)];
    for (const [, target = '', heading = ''] of targets) {
      expect(listGuides()).toContain(target);
      if (heading !== '') expect(listHeadings(read(target))).toContain(heading);
    }
  });

  test('names only codes, operations and headers that exist', () => {
    const spans = [...text.matchAll(/`([^`]+)`/g)].map(([, span = '']) => span);
    const codes = spans.filter((span) => /^[a-z]+(_[a-z]+)+$/.test(span));
    expect(Object.keys(errorTable)).toEqual(expect.arrayContaining(codes));

    const paths = [...read(name).matchAll(/\/v1(\/[a-z{}/]+)/gi)].map(([, path = '']) => path);
    const known = operations.map(({ path }) => path);
    // Before an id, as in /pets/7
    for (const path of paths) expect([...known, '/pets/']).toContain(path);

    const headers = spans.filter((span) => /^(X-|RateLimit|Retry|Idempotency-)[\w-]*[a-z]$/.test(span));
    const parameters = operations.flatMap((operation) => operation.parameters ?? []);
    const sent = parameters.filter((parameter) => parameter.in === 'header');
    for (const header of headers) {
      expect([
        ...Object.keys(document.components.headers),
        ...sent.map((parameter) => parameter.name),
      ]).toContain(header);
    }
  });
});

test('the guides together stay short enough to be read, with what is folded, too', () => {
  const texts = names.map((name) => withoutCode(read(name)));
  const all = countWords(texts.join('\n').replaceAll(/<[^>]+>/g, ' '));
  const open = countWords(texts.join('\n').replaceAll(FOLDED, ''));
  expect([open <= MAX_WORDS, all <= MAX_WORDS_WITH_FOLDED], `${open} words, ${all} with folded ones`).toEqual(
    [true, true],
  );
});

// The guide to errors is nothing but such a table.
test.each(names.filter((name) => name !== '03-errors.md'))('%s says in a table what can go wrong', (name) => {
  expect(withoutCode(read(name))).toMatch(/^## What can go wrong\n\n\|(?:.+\|){3}\n\|/m);
});

test('the guide to errors explains every code with its status, by ascending status', () => {
  const rows = [
    ...read('03-errors.md').matchAll(/^\| (\d{3}) \| `(\w+)` \| (.+) \| (.+) \| (yes|no|later) \|$/gm),
  ];
  const explained = rows.map(([, status, code]) => `${status} ${code}`);
  expect(explained.toSorted()).toEqual(
    Object.entries<ErrorDefinition>(errorTable)
      .map(([code, { status }]) => `${status} ${code}`)
      .sort(),
  );
  const statuses = rows.map(([, status]) => Number(status));
  expect(statuses).toEqual(statuses.toSorted((a, b) => a - b));
});

const ENDED_NOW = { bannedUntil: new Date(), banSeconds: 10 ** 6 };
const firstBanMinutes = nextBanSeconds({ bannedUntil: null, banSeconds: null }, Date.now()) / 60;
const longestBanHours = nextBanSeconds(ENDED_NOW, Date.now()) / 3_600;
const getPet = listOperations(createRouter(resources)).find(({ name }) => name === 'getPet');
const removalDay = getPet?.deprecation?.removal.toLocaleDateString('en-GB', {
  dateStyle: 'long',
  timeZone: 'UTC',
});
const { name: petName } = (document.components.schemas.NewPet as JsonSchema).properties;
const keyLength = generateKey('as_live_').length - 'as_live_'.length;

test.each([
  ['02-first-call.md', `\`name\` has 1 to ${petName?.maxLength} characters`],
  ['01-keys.md', `followed by ${keyLength} letters and digits`],
  ['03-errors.md', errorOf('payload_too_large').message],
  [
    '04-rate-limits.md',
    `per client address: ${readConfig(definition.identity, {}).anonymousPerMinute} per minute`,
  ],
  ['04-rate-limits.md', `banned for ${firstBanMinutes} minutes`],
  ['04-rate-limits.md', `up to ${longestBanHours} hours`],
  ['04-rate-limits.md', `pages of ${MAX_PAGE_SIZE}, the most`],
  ['04-rate-limits.md', `the default ${DEFAULT_PAGE_SIZE}`],
  ['05-pagination.md', `from 1 to ${MAX_PAGE_SIZE}; the default is ${DEFAULT_PAGE_SIZE}`],
  ['05-pagination.md', `will be removed on ${removalDay}`],
  ['06-safe-retries.md', `remembered for ${IDEMPOTENCY_TTL_HOURS} hours`],
  ['07-typescript.md', `at most ${MAX_BATCH_SIZE} calls`],
  ['07-typescript.md', `maxItems: ${MAX_BATCH_SIZE},`],
])('%s says what the code does: %s', (name, fact) => {
  expect(read(name).replaceAll(/\s+/g, ' ')).toContain(fact);
});

test('the README shows an operation as its source has it', async () => {
  const [shown] = readCodeBlocks().filter(({ notRun }) => notRun?.startsWith('src/pets/procedures.ts'));
  expect(await readFile('src/pets/procedures.ts', 'utf8')).toContain(shown?.code ?? expect.unreachable());
});
