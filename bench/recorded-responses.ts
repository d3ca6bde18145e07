import { writeFile } from 'node:fs/promises';
import { type Case, cases, PET_COUNT } from './cases.js';
import type { BenchServer } from './servers.js';

export interface RecordedResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Requests for this id are recorded; it has as many digits as most. */
export const RECORDED_ID = PET_COUNT / 2;
/** node:http sets these by itself. */
const HEADERS_OF_NODE = ['connection', 'date', 'keep-alive', 'transfer-encoding'];

/** Sends one request of each case to a server and writes the responses to a file, as entries of a map. */
export async function recordResponses({ port, keys }: BenchServer, file: string): Promise<void> {
  const entries: [string, RecordedResponse][] = [];
  for (const { method, path, body, key } of Object.values<Case>(cases)) {
    const authorization = `Bearer ${keys[key]}`;
    const url = path(RECORDED_ID);
    const response = await fetch(`http://127.0.0.1:${port}${url}`, {
      method,
      headers: { authorization, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: body(RECORDED_ID) }),
    });
    const headers = Object.fromEntries(
      [...response.headers].filter(([name]) => !HEADERS_OF_NODE.includes(name)),
    );
    const recorded = { status: response.status, headers, body: await response.text() };
    entries.push([toRequestKey(method, url, authorization), recorded]);
  }
  await writeFile(file, JSON.stringify(entries));
}

export function toRequestKey(method: string, url: string, authorization: string): string {
  return `${method} ${url} ${authorization}`;
}
