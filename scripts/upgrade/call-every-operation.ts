import { randomUUID } from 'node:crypto';
import { Caller, type Found } from './caller.js';
import type { Keys } from './keys.js';
import { type Document, type Members, type Operation, readOperations } from './operations.js';
import { type Call, listTools, PROTOCOLS, type Protocol } from './protocols.js';

/** Creates under an Idempotency-Key that succeeded, with their statuses */
export type Creates = { readonly call: Call; readonly status: number }[];

interface Round {
  readonly url: string;
  readonly keys: Keys;
  /** Creates of earlier rounds, which are repeated. Those of this round are added. */
  readonly creates: Creates;
  /** All texts of answers are added. */
  readonly texts: Set<string>;
  /** Whether only operations that read are called */
  readonly isReading: boolean;
  readonly signal: AbortSignal;
}

/** What operators' machines ask */
const PROBES = ['/health/ready', '/metrics'];
/** Parameters of a page are not filters. */
const PAGING = ['limit', 'cursor'];
/** Names the key that an operation ends, which is the caller's. */
const HINT = 'hint';

/**
 * Calls every operation that a service describes, over every protocol: reads page by page with each value of each filter, and
 * of each item; creates and changes with each value of each member, of each item. No response may be a 5xx, and a read must
 * be a 200. Every operation has to succeed at least once.
 */
export async function callEveryOperation(round: Round): Promise<Found[]> {
  const { url, keys, creates, texts, isReading, signal } = round;
  const document: Document = await (await fetch(`${url}/openapi.json`)).json();
  const operations = readOperations(document);
  const tools = await listTools(url, keys.main);
  const caller = new Caller(url, operations, keys.main, signal);
  const earlier = creates.splice(0);
  for (const operation of operations.filter(({ method }) => method === 'GET' || !isReading)) {
    const protocols = PROTOCOLS.filter((each) => each !== 'MCP' || tools.includes(operation.name));
    const items = await caller.listItems(operation.path);
    if (operation.method === 'GET') await read(caller, operation, items, protocols);
    else if (operation.query.some(({ name }) => name === HINT))
      await endKeys(caller, operation, protocols, keys);
    else await write(caller, operation, items, protocols, round);
    for (const key of keys.others)
      await caller.call({
        operation,
        protocol: 'REST',
        input: { ...required(operation), ...items[0], ...operation.body?.example },
        key,
      });
    if (!caller.succeeded.has(operation.name))
      caller.problems.push({ operation: operation.name, call: 'all calls', cause: 'none has succeeded' });
  }
  for (const { call, status } of earlier) {
    const operation = operations.find(({ name }) => name === call.operation.name);
    if (operation !== undefined) await caller.call(call, status);
  }
  creates.unshift(...earlier);
  for (const text of caller.texts) texts.add(text);
  return [...(await callProbes(url)), ...caller.problems];
}

async function callProbes(url: string): Promise<Found[]> {
  const problems: Found[] = [];
  for (const path of PROBES) {
    const { status } = await fetch(url + path);
    if (status !== 200) problems.push({ operation: path, call: `GET ${path}`, cause: String(status) });
  }
  return problems;
}

async function read(
  caller: Caller,
  operation: Operation,
  items: readonly Members[],
  protocols: readonly Protocol[],
): Promise<void> {
  const filters = operation.query.filter(({ name }) => !PAGING.includes(name));
  const choices: Members[] = [required(operation)];
  for (const filter of filters)
    choices.push(...(await caller.listValues(filter)).map((value) => ({ [filter.name]: value })));
  let turn = 0;
  for (const item of items) {
    for (const choice of choices) {
      const { inputs } = await caller.readPages(operation, { ...item, ...choice });
      // REST has already read the items.
      const protocol = protocols[turn++ % protocols.length] as Protocol;
      if (protocol !== 'REST')
        for (const input of inputs) await caller.call({ operation, protocol, input }, 200);
    }
  }
}

/**
 * Each item gets every body, one protocol after the other. The next item begins with the next body, so that among alike items
 * each body finds an unchanged one.
 */
async function write(
  caller: Caller,
  operation: Operation,
  items: readonly Members[],
  protocols: readonly Protocol[],
  { keys, creates }: Round,
): Promise<void> {
  const bodies = await listBodies(caller, operation);
  let turn = 0;
  for (const [index, item] of items.entries()) {
    for (let shift = 0; shift < bodies.length; shift += 1) {
      const protocol = protocols[turn++ % protocols.length] as Protocol;
      const input = { ...item, ...bodies[(index + shift) % bodies.length] };
      const idempotencyKey = operation.takesIdempotencyKey && protocol === 'REST' ? randomUUID() : undefined;
      const call = { operation, protocol, input, idempotencyKey, key: keys.main };
      const { status } = await caller.call(call);
      if (idempotencyKey !== undefined && status < 400) creates.push({ call, status });
    }
  }
}

/** Values for the members of an input that no path names: the example, and each value of each member */
async function listBodies(caller: Caller, { body, query }: Operation): Promise<Members[]> {
  const needed = required({ query });
  if (body === undefined) return [needed];
  const { example, members } = body;
  // In a change, each member may stand alone.
  const others = members.some(({ isRequired }) => isRequired) ? example : {};
  const bodies: Members[] = [example];
  for (const member of members)
    bodies.push(...(await caller.listValues(member)).map((value) => ({ ...others, [member.name]: value })));
  return [...new Map(bodies.map((each) => [JSON.stringify(each), each])).values()];
}

async function endKeys(
  caller: Caller,
  operation: Operation,
  protocols: readonly Protocol[],
  keys: Keys,
): Promise<void> {
  for (const protocol of protocols) {
    const { key, hint } = await keys.issueEndable();
    await caller.call({ operation, protocol, input: { [HINT]: hint }, key });
  }
}

/** What a query must have */
function required({ query }: Pick<Operation, 'query'>): Members {
  return Object.fromEntries(
    query.filter(({ isRequired }) => isRequired).map(({ name, values }) => [name, values[0]]),
  );
}
