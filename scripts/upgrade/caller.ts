import type { Member, Members, Operation } from './operations.js';
import { type Answer, type Call, Sender, toRequest } from './protocols.js';

/** A call whose response was wrong. */
export interface Found {
  readonly operation: string;
  /** The request */
  readonly call: string;
  readonly cause: string;
  /** The id by which the log may say more */
  readonly requestId?: string | undefined;
}

/** Calls a service, and collects wrong responses. */
export class Caller {
  readonly problems: Found[] = [];
  /** The names of operations of which a call has succeeded */
  readonly succeeded = new Set<string>();
  /** All texts in the responses of successful calls */
  readonly texts = new Set<string>();
  readonly #operations: readonly Operation[];
  readonly #key: string;
  readonly #sender: Sender;

  /** @param key with all scopes, and limits that are not reached */
  constructor(url: string, operations: readonly Operation[], key: string, signal: AbortSignal) {
    this.#operations = operations;
    this.#key = key;
    this.#sender = new Sender(url, signal);
  }

  /** @param expected a status; if left out, anything but a 5xx will do */
  async call(call: Omit<Call, 'key'> & { readonly key?: string }, expected?: number): Promise<Answer> {
    const { name } = call.operation;
    const complete = { key: this.#key, ...call };
    const answer = await this.#sender.send(complete);
    const { status, headers, body } = answer;
    if (status < 400) {
      this.succeeded.add(name);
      this.#noteTexts(body);
    }
    if (expected === undefined ? status >= 500 : status !== expected) {
      const { method, path, body: sent } = toRequest(complete);
      const shown = `${method} ${path}${sent === undefined ? '' : ` ${JSON.stringify(sent)}`}`;
      const requestId = headers.get('x-request-id') ?? undefined;
      const said = body?.code ?? body?.error?.data?.error?.code ?? '';
      this.problems.push({ operation: name, call: shown, cause: `${status} ${said}`.trim(), requestId });
    }
    return answer;
  }

  #noteTexts(value: unknown): void {
    if (typeof value === 'string') this.texts.add(value);
    else if (typeof value === 'object' && value !== null)
      for (const member of Object.values(value)) this.#noteTexts(member);
  }

  /** Reads a list to its end. Resolves with the input of each page, and with the ids of the items. */
  async readPages(operation: Operation, input: Members) {
    const inputs: Members[] = [];
    const ids: unknown[] = [];
    for (let next: Members | undefined = input; next !== undefined; ) {
      inputs.push(next);
      const { body, headers } = await this.call({ operation, protocol: 'REST', input: next }, 200);
      if (Array.isArray(body)) ids.push(...body.flatMap((item) => item?.id ?? []));
      const [, link] = /<([^>]*)>; *rel="next"/.exec(headers.get('link') ?? '') ?? [];
      const cursor = link && new URL(link).searchParams.get('cursor');
      next = cursor ? { ...input, cursor: Number(cursor) } : undefined;
    }
    return { inputs, ids };
  }

  /** The members that name every item of a path, such as {petId: 1}: from the lists that the path goes through */
  async listItems(path: string): Promise<Members[]> {
    let items: Members[] = [{}];
    let before = '';
    for (const segment of path.split('/').slice(1)) {
      const [, name] = /^\{(\w+)\}$/.exec(segment) ?? [];
      const list = this.#operations.find((each) => each.method === 'GET' && each.path === before);
      if (name !== undefined) {
        const next: Members[] = [];
        for (const item of items) {
          const ids = list === undefined ? [] : (await this.readPages(list, item)).ids;
          // An item may exist without being listed, and a PUT may create it.
          next.push(...(ids.length === 0 ? [1] : ids).map((id) => ({ ...item, [name]: id })));
        }
        items = next;
      }
      before += `/${segment}`;
    }
    return items;
  }

  /** Values of a member: the ids of all items if it has the name of their path parameter */
  async listValues({ name, values }: Member): Promise<readonly unknown[]> {
    const [path] = this.#operations.flatMap((each) =>
      each.path.split(`/{${name}}`, 1).filter((start) => start !== each.path),
    );
    if (path === undefined) return values;
    return (await this.listItems(`${path}/{${name}}`)).map((item) => item[name]);
  }
}
