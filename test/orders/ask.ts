import { setTimeout as delay } from 'node:timers/promises';
import { toolCall } from '../support/mcp.js';
import { type Caller, post, rpcPath } from '../support/test-service.js';

/** What an operation responded with: its output, or the code of its error. */
export interface Answer {
  readonly code: string | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: tests say what they expect
  readonly result: any;
  readonly isReplay: boolean;
}

type Input = Readonly<Record<string, unknown>>;

/** The operations that a shop's day needs: the method, the path, and the member of the input that stands in it */
const ROUTES = {
  getPet: ['GET', '/pets', 'petId'],
  updatePet: ['PATCH', '/pets', 'petId'],
  createOrder: ['POST', '/store/orders', undefined],
  getOrder: ['GET', '/store/orders', 'orderId'],
  updateOrder: ['PATCH', '/store/orders', 'orderId'],
} as const;
export type Asked = keyof typeof ROUTES;

type Send = (by: Caller, operation: Asked, input: Input, headers: Record<string, string>) => Promise<Answer>;

/** The ways to call an operation once, with the answer in one form. */
export const PROTOCOLS: Readonly<Record<'rest' | 'trpc' | 'mcp', Send>> = {
  async rest(by, operation, input, headers) {
    const [method, path, inPath] = ROUTES[operation];
    const body = Object.fromEntries(Object.entries(input).filter(([name]) => name !== inPath));
    const address = `/v1${path}${inPath === undefined ? '' : `/${input[inPath]}`}`;
    const response = await by(address, method === 'GET' ? {} : { ...post(body, headers), method });
    return toAnswer(response.body, response.headers);
  },
  async trpc(by, operation, input, headers) {
    const response = await (ROUTES[operation][0] === 'GET'
      ? by(rpcPath(operation, input))
      : by(`/trpc/${operation}`, post(input, headers)));
    const { result, error } = response.body;
    return toAnswer(result?.data ?? error.data.error, response.headers);
  },
  async mcp(by, operation, input, headers) {
    const response = await by('/mcp', toolCall(operation, input, headers));
    return toAnswer(response.body.result?.structuredContent ?? response.body, response.headers);
  },
};
export type Protocol = keyof typeof PROTOCOLS;
export const NAMES = Object.keys(PROTOCOLS) as Protocol[];
export const protocolOf = (n: number) => NAMES[n % NAMES.length] as Protocol;

const toAnswer = (result: Answer['result'], headers: Headers): Answer => ({
  code: result.code,
  result,
  isReplay: headers.get('idempotency-replayed') === 'true',
});

/**
 * Calls as a careful client does: after a 503, which a busy machine may answer with, again. `isRepeated` says so: what the
 * answer refuses may have been done by then.
 */
export async function ask(
  protocol: Protocol,
  by: Caller,
  operation: Asked,
  input: Input,
  headers: Record<string, string> = {},
): Promise<Answer & { readonly isRepeated: boolean }> {
  for (let attempt = 0; ; attempt += 1) {
    const answer = await PROTOCOLS[protocol](by, operation, input, headers);
    if (answer.code !== 'service_unavailable' || attempt === 100)
      return { ...answer, isRepeated: attempt > 0 };
    await delay(20);
  }
}
