import { cpSync, existsSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { toInstalledCommands } from '@animal-store/platform/development';
import { createTemporaryFolder, runCommand } from '@animal-store/platform/testing';
import { Command } from 'commander';
import { expect, onTestFinished, test } from 'vitest';
import { definition } from '#operations-under-test';
import { addKeyCommands } from '../packages/platform/src/cli/keys-command.js';
import { addMigrateCommand } from '../packages/platform/src/cli/migrate.js';
import { addServeCommand } from '../packages/platform/src/cli/serve-command.js';
import { errorTable } from '../packages/platform/test/support/error-table.js';
import { connectClient } from '../packages/platform/test/support/mcp.js';
import { GUIDES_FOLDER, listGuides } from './guides/code-blocks.js';
import { startService } from './support/service.js';

// What the program prints and hands out outside of docs/, which nobody runs: every command and name in it exists.

const { scripts }: { scripts: Record<string, string> } = JSON.parse(readFileSync('package.json', 'utf8'));
const program = new Command().exitOverride();
const store = { definition, loadResources: async () => [] };
addServeCommand(addKeyCommands(program, store), store);
addMigrateCommand(program, definition);
for (const name of ['seed', 'studio', 'openapi']) program.command(name);

const packages = readdirSync('packages').filter((name) => name !== 'prisma-dev-stub');
const folders = ['src', ...packages.map((name) => join('packages', name, 'src'))].filter(existsSync);
const sources = folders.flatMap((folder) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(?:ts|js)$/.test(name) && !name.includes('generated'))
    .map((name) => ({ path: join(folder, name), text: readFileSync(join(folder, name), 'utf8') })),
);

/** A command as texts have it, such as `npm run -s keys -- create --name shop` */
const COMMAND = /npm run (?:-s )?([\w:]+)((?: -- [^'"`\n;,.]*)?)/g;
const guides = listGuides().map((name) => {
  const path = join(GUIDES_FOLDER, name);
  return { path, text: readFileSync(path, 'utf8').replaceAll('\\\n', '') };
});
const commands = [...sources, ...guides].flatMap(({ path, text }) =>
  [...text.matchAll(COMMAND)].map(([, script = '', args = '']) => ({
    path,
    script,
    args: args.slice(4).trim(),
  })),
);

/** What is wrong with the arguments of a command, or of one of its own commands */
function findProblem(command: Command, args: readonly string[]): string | undefined {
  const [first = '', ...rest] = args;
  const inner = command.commands.find((each) => each.name() === first);
  if (inner !== undefined) return findProblem(inner, rest);
  if (command.commands.length > 0 && /^[a-z]/.test(first)) return `${command.name()} has no ${first}`;
  const options = args.filter((each) => each.startsWith('--') && each !== '--help');
  const known = command.options.map(({ long }) => long);
  return options.find((option) => !known.includes(option));
}

test('every command in a text is a script of package.json, with arguments that it has', () => {
  expect(commands.length).toBeGreaterThan(10);
  for (const { path, script, args } of commands) {
    expect([path, Object.keys(scripts)]).toEqual([path, expect.arrayContaining([script])]);
    const command = program.commands.find((each) => each.name() === script);
    // What a template puts in is not known here.
    const words = args
      .replace(/\$\{.*/, '')
      .split(' ')
      .filter(Boolean);
    if (command !== undefined)
      expect([path, args, findProblem(command, words)]).toEqual([path, args, undefined]);
  }
  const quoted = sources.flatMap(({ path, text }) =>
    [...text.matchAll(/"keys ([a-z-]+)"/g)].map(([, name = '']) => ({ path, name })),
  );
  const keys = program.commands.find((each) => each.name() === 'keys') as Command;
  for (const { path, name } of quoted) expect([path, findProblem(keys, [name])]).toEqual([path, undefined]);
});

test('a heading in a docstring is a line of its own', () => {
  const headings = sources.flatMap(({ path, text }) =>
    [...text.matchAll(/^ *\* #+ (.*)$/gm)].map(([, heading = '']) => ({ path, heading })),
  );
  expect(headings.length).toBeGreaterThan(10);
  for (const each of headings)
    expect(each).toEqual({ ...each, heading: expect.stringMatching(/^[^.:;]{1,40}$/) });
});

test('no text has the address that leads to the client, which a lock file must not have', () => {
  const advising = sources.filter(({ text }) => /npm install \S*\/client\.tgz/.test(text));
  expect(advising.map(({ path }) => path)).toEqual([]);
});

test('where there are no scripts of npm, as in the image, the command line names what there is', async () => {
  expect(
    toInstalledCommands(
      definition.root,
      'with: npm run migrate -- --grant-to ROLE; npm run -s keys -- list',
      () => false,
    ),
  ).toBe('with: node dist/cli.js migrate --grant-to ROLE; node dist/cli.js keys list');
  const folder = await createTemporaryFolder();
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const name of ['dist', 'package.json', 'scripts/node-version.js'])
    cpSync(name, join(folder, name), { recursive: true });
  symlinkSync(join(process.cwd(), 'node_modules'), join(folder, 'node_modules'));
  for (const args of [[], ['keys'], ['keys', 'create']]) {
    const help = runCommand(process.execPath, ['dist/cli.js', ...args, '--help'], {}, { cwd: folder });
    expect(await help.ended, help.output()).toBe(0);
    expect(help.output()).toMatch(/Examples?:\n {2}node dist\/cli\.js keys create --name/);
    expect(help.output()).not.toContain('npm');
  }
});

/** The names of members at any depth of a schema, and the values that it lists */
function listNames(schema: unknown): string[] {
  if (typeof schema !== 'object' || schema === null) return [];
  const { properties = {}, enum: values = [] } = schema as { properties?: object; enum?: unknown[] };
  return [...Object.keys(properties), ...values.map(String), ...Object.values(schema).flatMap(listNames)];
}

/** The descriptions at any depth of a tool */
function listDescriptions(node: unknown): string[] {
  if (typeof node !== 'object' || node === null) return [];
  const { description } = node as { description?: unknown };
  return [
    ...(typeof description === 'string' ? [description] : []),
    ...Object.values(node).flatMap(listDescriptions),
  ];
}

/** All descriptions of the document, what an editor shows, what the command line says, and what a first start prints */
function listTexts(): { place: string; text: string }[] {
  const document: unknown = JSON.parse(readFileSync('docs/openapi.json', 'utf8'));
  const read = (path: string) => ({ place: path, text: readFileSync(path, 'utf8') });
  const listHelp = (command: Command): string[] => [
    command.helpInformation(),
    ...command.commands.flatMap(listHelp),
  ];
  return [
    ...listDescriptions(document).map((text) => ({ place: 'docs/openapi.json', text })),
    ...listHelp(program).map((text) => ({ place: '--help', text })),
    read('packages/client/dist/contract.d.ts'),
    read('packages/reference-page/src/samples.js'),
    read('packages/platform/src/run.ts'),
    ...sources
      .filter(({ path }) => path.startsWith('packages/platform/src/protocols/mcp/'))
      .map(({ path }) => read(path)),
  ].map(({ place, text }) => ({ place, text: text.replaceAll(/['"`]? ?\+?\s+(?:\* |['"`])?/g, ' ') }));
}

test('what is promised outside of the guides is in them, with the same figures and by the same names', () => {
  const said = guides
    .map(({ text }) => text)
    .join('\n')
    .replaceAll(/\s+/g, ' ');
  // What the command line says is for operators, who have documents of their own.
  const texts = listTexts().filter(({ place }) => place !== '--help');
  const found = texts.flatMap(({ place, text }) => [
    ...[
      ...text.matchAll(/(?<![\w.-])\d[\d,]* (?:hours?|minutes|days|months|(?:visible ASCII )?characters)\b/g),
    ].map(([words]) => ({ place, words })),
    ...[...text.matchAll(/\b(?:X-[A-Z]|Idempotency|Retry|RateLimit)[\w-]*-\w+\b/g)].map(([words]) => ({
      place,
      words,
    })),
  ]);
  expect(found.length).toBeGreaterThan(10);
  expect(found.filter(({ words }) => !said.includes(words))).toEqual([]);
});

test('a key is revoked, in every text, and does not end by a call', () => {
  const wrong = listTexts().flatMap(({ place, text }) =>
    [...text.matchAll(/\b[Ee]nds? (?:a|the|your|its) (?:API )?key\b(?! for good, revoke)/g)].map(
      ([said]) => ({ place, said }),
    ),
  );
  expect(wrong).toEqual([]);
});

test('every name in a text that a model reads is that of a tool, an argument, or a member of what it gets', async () => {
  const service = await startService();
  onTestFinished(() => service.close());
  const client = await connectClient(service, '2025-11-25');
  const { tools } = await client.listTools();
  const known = new Set([
    ...tools.flatMap(({ name, inputSchema, outputSchema }) => [
      name,
      ...listNames(inputSchema),
      ...listNames(outputSchema),
    ]),
    ...['code', 'message', 'status', 'fields', 'scope', 'retryAfterSeconds'],
    ...Object.keys(errorTable),
  ]);
  const texts = [client.getInstructions() ?? '', ...tools.flatMap(listDescriptions)];
  const names = texts.flatMap((text) => [
    ...[...text.matchAll(/`([a-z]\w*)`/g)].map(([, name = '']) => name),
    ...[...text.matchAll(/(?<![\w"/])[a-z]+[A-Z]\w*/g)].map(([name]) => name),
  ]);
  expect(names.length).toBeGreaterThan(5);
  expect([...new Set(names)].filter((name) => !known.has(name))).toEqual([]);
});
