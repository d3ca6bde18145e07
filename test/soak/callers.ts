import { type Environment, runKeys } from '../support/process.js';

/** An API key with limits that no other has, so that headers of another caller's are recognised. */
export interface Caller {
  readonly name: string;
  readonly key: string;
  readonly perMinute: number;
  readonly perDay: number;
  readonly isLimited: boolean;
}

export interface Callers {
  /** With limits that are never reached */
  readonly ample: readonly Caller[];
  readonly limited: Caller;
}

export async function createCallers(environment: Environment): Promise<Callers> {
  const create = async (
    name: string,
    perMinute: number,
    perDay: number,
    isLimited = false,
  ): Promise<Caller> => {
    const limits = ['--plan', 'enterprise', '--per-minute', `${perMinute}`, '--per-day', `${perDay}`];
    const { key } = await runKeys(environment, 'create', '--name', name, ...limits);
    return { name, key, perMinute, perDay, isLimited };
  };
  return {
    ample: [
      await create('first', 10_000_001, 100_000_001),
      await create('second', 10_000_002, 100_000_002),
      await create('third', 10_000_003, 100_000_003),
    ],
    limited: await create('limited', 30, 3_000, true),
  };
}
