import { type Command, Option } from 'commander';
import { SCOPES, type Scope } from '#store/scopes.js';
import { OperatorError } from '../errors/operator-error.js';
import { nextBanSeconds } from '../keys/bans.js';
import type { ApiKey, KeyStore, ListedKey, PlanChoice } from '../keys/store.js';
import type { Resource } from '../operations/resource.js';
import type { UsageStore } from '../usage/store.js';
import * as parse from './arguments.js';
import * as view from './key-view.js';
import { formatKeyUsage, formatUsage, summariseKeys, summariseUsage } from './tables.js';

const ID = '0b54e7c0';
const READ_SCOPES = SCOPES.filter((scope) => scope.endsWith(':read'));
/** What each command does, and what may follow its name */
const HELP = {
  create: [
    'issue a key, which is shown only this once',
    '--name shop --plan pro --expires 30d',
    '--name warehouse --plan enterprise --per-minute 5000 --per-day 1000000 --json',
    `--name storefront --plan free --scopes ${SCOPES[0]} -q`,
  ],
  list: ['show all keys', '', '--json'],
  show: ['show one key, when it was used, and how long its next ban would last', ID],
  usage: ['show the requests of the last 30 days (UTC), up to half a minute ago', '', '--deprecated', ID],
  rotate: ['replace a key: the new one is shown only this once', `${ID} --overlap 24h`],
  revoke: ['end a key, and the old one that it replaced', ID],
  'set-plan': ['move a key to another plan', `${ID} --plan business`],
  'set-scopes': ['change what a key may do', `${ID} --scopes ${READ_SCOPES}`],
  unban: ['lift the ban of a key, so that its next one is not doubled', ID],
} as const;

/** The stores that a command uses, open while it runs. */
export interface KeyTools {
  readonly store: KeyStore;
  readonly usage: UsageStore;
}
type Run<Options, Argument> = (
  tools: KeyTools,
  options: Options,
  argument: Argument,
) => Promise<view.Printed>;
/** Resolves with undefined if the key is gone. */
type Change<Options> = (store: KeyStore, apiKey: ApiKey, options: Options) => Promise<ApiKey | undefined>;
type CreateOptions = PlanChoice & { name: string; expires?: Date; scopes?: readonly Scope[] };

/**
 * The commands that issue and manage keys. Invalid arguments are reported before `withKeys` opens the tools, which it
 * closes afterwards.
 */
export function addKeyCommands(
  program: Command,
  withKeys: (run: (tools: KeyTools) => Promise<void>) => Promise<void>,
  loadResources: () => Promise<readonly Resource[]>,
): void {
  const keys = program
    .command('keys')
    .description('issue and manage API keys')
    .version(program.version() ?? '')
    .showHelpAfterError('(--help shows the options of a command)');
  addExamples(keys, ['create --name shop --plan pro', 'list', `show ${ID}`, `revoke ${ID}`]);

  const add = <Options>(name: keyof typeof HELP, run: Run<Options, string>) => {
    const [description, ...examples] = HELP[name];
    const command = keys.command(name).description(description);
    addExamples(
      command,
      examples.map((example) => `${name} ${example}`.trimEnd()),
    );
    return command.action(() =>
      withKeys(async (tools) => {
        const { json, text, key } = await run(tools, command.opts() as Options, command.processedArgs[0]);
        const output = command.opts().quiet ? key : text;
        process.stdout.write(command.opts().json ? `${JSON.stringify(json)}\n` : `${output}\n`);
      }),
    );
  };
  const addForKey = <Options>(name: keyof typeof HELP, run: Run<Options, ListedKey>) =>
    add<Options>(name, async (tools, options, prefix) =>
      run(tools, options, await findKey(tools.store, prefix)),
    ).argument('<id>', 'the id of the key, as "keys list" shows it, or the beginning of it', parse.parseId);
  const addChange = <Options>(name: keyof typeof HELP, change: Change<Options>) =>
    addForKey<Options>(name, async ({ store }, options, apiKey) =>
      view.printKey(expectFound(apiKey.id, await change(store, apiKey, options))),
    );

  const create = add<CreateOptions>('create', async ({ store }, { expires, ...options }) =>
    view.printIssued(await store.create({ ...options, expiresAt: expires })),
  ).requiredOption('--name <name>', 'who or what the key is for', parse.parseName);
  const quiet = new Option('-q, --quiet', 'print only the key').conflicts('json');
  parse
    .addPlanOptions(create)
    .addOption(parse.createScopesOption())
    .option(
      '--expires <duration>',
      'how long it is valid: a number and s, m, h or d, such as 30d',
      parse.parseEnd,
    )
    .addOption(quiet);

  add('list', async ({ store }) => view.printKeys(await store.list()));

  addForKey('show', async (_tools, _options, apiKey) => {
    const next = nextBanSeconds(apiKey, Date.now());
    return view.printKey(apiKey, { nextBanSeconds: next }, [
      ['Last used', apiKey.lastUsedOn ?? '-'],
      ['Next ban', `${next} s`],
    ]);
  });

  add<{ deprecated?: true }>('usage', async ({ store, usage }, { deprecated }, prefix) => {
    const { listOperations } = await import('../operations/list-operations.js');
    const { createRouter } = await import('../operations/resource.js');
    const operations = listOperations(createRouter(await loadResources()));
    if (prefix === undefined) {
      const all = summariseKeys(await usage.readKeys(Date.now()), operations);
      const chosen = deprecated ? all.filter(({ deprecatedRequests }) => deprecatedRequests > 0) : all;
      return { json: chosen, text: formatKeyUsage(chosen, deprecated ? ' of deprecated operations' : '') };
    }
    const { id, name } = await findKey(store, prefix);
    const rows = await usage.read(id, Date.now());
    return { json: { id, name, ...summariseUsage(rows, operations) }, text: formatUsage(rows, operations) };
  })
    .argument('[id]', 'one key, by operation and day; without it, all keys, by requests', parse.parseId)
    .option('--deprecated', 'only the keys that call deprecated operations')
    .hook('preAction', (command) => {
      if (command.args.length > 0 && command.opts().deprecated)
        command.error('error: --deprecated is for all keys: leave out the id');
    });

  const overlap =
    'how long the old key keeps working, such as 24h (default: it ends at once). The old key of an earlier rotation ends in any case';
  addForKey<{ overlap?: Date }>('rotate', async ({ store }, options, apiKey) =>
    view.printIssued(expectFound(apiKey.id, await store.rotate(usableId(apiKey), options.overlap))),
  )
    .option('--overlap <duration>', overlap, parse.parseEnd)
    .addOption(quiet);
  addChange('revoke', (store, { id }) => store.revoke(id, new Date()));
  parse.addPlanOptions(
    addChange<PlanChoice>('set-plan', (store, apiKey, plan) => store.setPlan(usableId(apiKey), plan)),
  );
  addChange<{ scopes: readonly Scope[] }>('set-scopes', (store, apiKey, { scopes }) =>
    store.setScopes(usableId(apiKey), scopes),
  ).addOption(parse.createScopesOption().makeOptionMandatory());
  addChange('unban', (store, { id, bannedUntil }) => {
    if (bannedUntil === null) throw new OperatorError(`The key ${id} has no ban: nothing was changed.`);
    return store.unban(id);
  });
  for (const command of keys.commands) command.option('--json', 'print one line of JSON');
}

function addExamples(command: Command, examples: readonly string[]): void {
  const lines = examples.map((example) => `\n  npm run -s keys -- ${example}`);
  command.addHelpText('after', `\nExamples:${lines.join('')}`);
}

/** Finds a key by its id or the beginning of it. @throws OperatorError unless exactly one matches */
async function findKey(store: KeyStore, prefix: string): Promise<ListedKey> {
  const found = await store.findByIdPrefix(prefix);
  if (found.length <= 1) return expectFound(prefix, found[0]);
  const candidates = found.map(({ id, name }) => `\n  ${id}  ${name}`).join('');
  throw new OperatorError(`The ids of ${found.length} keys start with ${prefix}:${candidates}`, {
    exitCode: 2,
  });
}

/** For the result of an update: the key may be gone since it was found. @throws OperatorError */
function expectFound<T>(id: string, found: T | undefined): T {
  if (found !== undefined) return found;
  throw new OperatorError(`There is no key with the id ${id}: "keys list" shows all.`, { exitCode: 3 });
}

/** @throws OperatorError when the key is revoked, which nothing undoes */
function usableId({ id, revokedAt }: ApiKey): string {
  if (revokedAt === null) return id;
  const advice = 'a revoked key stays so. Issue another with: keys create';
  throw new OperatorError(`The key ${id} is revoked, so nothing was changed: ${advice}`);
}
