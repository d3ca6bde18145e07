import { setTimeout as delay } from 'node:timers/promises';
import { type Caller, createProtocols, PROTOCOLS, type Protocol } from '@animal-store/platform/testing';
import { resources } from '../../src/router.js';

/** What an operation responded with: its output, or the code of its error. */
export interface Answer {
  readonly code: string | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: tests say what they expect
  readonly result: any;
  readonly isReplay: boolean;
}

/** The operations that a shop's day needs */
export type Asked = 'getPet' | 'updatePet' | 'createOrder' | 'getOrder' | 'updateOrder';

const protocolsOf = createProtocols(resources);
export const protocolOf = (n: number) => PROTOCOLS[n % PROTOCOLS.length] as Protocol;

/** Calls once. */
export async function askOnce(
  protocol: Protocol,
  by: Caller,
  operation: Asked,
  input: Readonly<Record<string, unknown>>,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const { headers: received, ...answer } = await protocolsOf(by)[protocol](operation, input, headers);
  return { ...answer, isReplay: received.get('idempotency-replayed') === 'true' };
}

/**
 * Calls as a careful client does: after a 503, which a busy machine may answer with, again. `isRepeated` says so: what the
 * answer refuses may have been done by then.
 */
export async function ask(
  ...call: Parameters<typeof askOnce>
): Promise<Answer & { readonly isRepeated: boolean }> {
  for (let attempt = 0; ; attempt += 1) {
    const answer = await askOnce(...call);
    if (answer.code !== 'service_unavailable' || attempt === 100)
      return { ...answer, isRepeated: attempt > 0 };
    await delay(20);
  }
}
