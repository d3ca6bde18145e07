import { Agent } from 'node:http';
import { checkResponse } from './check-response.js';
import { randomOfFaults } from './random.js';
import type { SoakRequest } from './requests.js';
import { type SoakResponse, sendRequest } from './send.js';

export interface Phase {
  readonly name: string;
  readonly connections: number;
  readonly requests: Iterator<SoakRequest, void>;
  /** Whether connections are killed, by this client and by PostgreSQL, so that a 503 is expected */
  readonly hasFaults: boolean;
}

export interface PhaseReport {
  readonly name: string;
  readonly seconds: number;
  /** By status; 0 for those whose client killed its connection first */
  readonly counts: ReadonlyMap<number, number>;
  /** By operation and status, as in `createOrder 409 pet_not_available` or `getPet 200` */
  readonly outcomes: ReadonlyMap<string, number>;
  readonly problems: readonly string[];
}

const KILLED_SHARE = 0.01;
/** A phase ends early after this many wrong responses. */
const MAX_PROBLEMS = 10;

/** Sends the requests of a phase, on connections that each wait for the response before they send again. */
export async function runPhase(port: number, { name, connections, requests, hasFaults }: Phase) {
  const counts = new Map<number, number>();
  const outcomes = new Map<string, number>();
  const problems: string[] = [];
  const count = (operation: string, status: string | number) => increment(outcomes, `${operation} ${status}`);
  const noteLost = ({ calls }: SoakRequest, how: string) => {
    for (const call of calls) {
      call.noteLost?.();
      count(call.operation, how);
    }
  };
  const startedAt = performance.now();
  const runConnection = async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    while (problems.length < MAX_PROBLEMS) {
      const next = requests.next();
      if (next.done) break;
      const request = next.value;
      const isKilled = hasFaults && randomOfFaults() < KILLED_SHARE;
      const sentAt = performance.now();
      try {
        const response = await sendRequest(request, { port, agent, isKilled });
        const status = response?.status ?? 0;
        increment(counts, status);
        const problem = response && checkResponse(request, response, { hasFaults, sentAt, count });
        if (response === undefined) noteLost(request, 'killed');
        if (problem !== undefined) problems.push(describeProblem(problem, request, response));
      } catch (error) {
        noteLost(request, 'failed');
        problems.push(describeProblem(String(error), request));
      }
    }
    agent.destroy();
  };
  await Promise.all(Array.from({ length: connections }, runConnection));
  const seconds = (performance.now() - startedAt) / 1000;
  return { name, seconds, counts, outcomes, problems } satisfies PhaseReport;
}

function increment<Kind>(counts: Map<Kind, number>, kind: Kind): void {
  counts.set(kind, (counts.get(kind) ?? 0) + 1);
}

function describeProblem(
  problem: string,
  { method, path, body, key, caller, id }: SoakRequest,
  response?: SoakResponse,
): string {
  const sent = { id, caller: caller.name, idempotencyKey: key?.value, body };
  return `${problem}\n  ${method} ${path} ${JSON.stringify(sent)}\n  ${JSON.stringify(response)}`;
}
