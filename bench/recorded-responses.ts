import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Case, cases, type Keys, PET_COUNT } from './cases.js';
import type { BenchServer } from './servers.js';

interface RecordedResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Requests for this id are recorded; it has as many digits as most. */
export const RECORDED_ID = PET_COUNT / 2;
/** node:http sets these by itself. */
const HEADERS_OF_NODE = ['connection', 'date', 'keep-alive', 'transfer-encoding'];

/** Responses by method, URL and kind of key; and the kinds of keys by the Authorization header that carries them. */
export interface Recording {
  readonly responses: readonly (readonly [string, RecordedResponse])[];
  readonly kinds: readonly (readonly [string, keyof Keys])[];
}

/** Sends one request of each case to the service; returns the file with its responses, which are the same for all keys. */
export async function recordResponses(started: readonly BenchServer[], folder: string): Promise<string> {
  const service = started.find(({ name }) => name === 'service');
  if (service === undefined) throw new Error('raw repeats what the service responds: --servers=service,raw');
  const { port, keys } = service;
  const responses: [string, RecordedResponse][] = [];
  for (const { method, path, body, key } of Object.values<Case>(cases)) {
    const url = path(RECORDED_ID);
    const response = await fetch(`http://127.0.0.1:${port}${url}`, {
      method,
      headers: { authorization: `Bearer ${keys[key][0]}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: body(RECORDED_ID) }),
    });
    const headers = Object.fromEntries(
      [...response.headers].filter(([name]) => !HEADERS_OF_NODE.includes(name)),
    );
    const recorded = { status: response.status, headers, body: await response.text() };
    responses.push([toRequestKey(method, url, key), recorded]);
  }
  const kinds = Object.entries(keys).flatMap(([kind, ofKind]: [string, readonly string[]]) =>
    ofKind.map((key) => [`Bearer ${key}`, kind as keyof Keys] as const),
  );
  const file = join(folder, 'responses.json');
  await writeFile(file, JSON.stringify({ responses, kinds } satisfies Recording));
  return file;
}

export function toRequestKey(method: string, url: string, kind: keyof Keys | undefined): string {
  return `${method} ${url} ${kind}`;
}
