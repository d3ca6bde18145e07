import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { THIS_CHECKOUT } from '../checkout.js';
import { type ServerProcess, startProcess } from '../server-process.js';
import { readStartArguments } from '../servers.js';

export interface SoakServiceOptions {
  readonly databaseUrl: string;
  readonly redisUrl: string;
  readonly logFile: string;
}

/** The built service, in one process, started as `npm start` does. */
export function startSoakService({
  databaseUrl,
  redisUrl,
  logFile,
}: SoakServiceOptions): Promise<ServerProcess> {
  return startProcess({
    name: 'service',
    args: readStartArguments(THIS_CHECKOUT),
    cwd: THIS_CHECKOUT,
    environment: { DATABASE_URL: databaseUrl, REDIS_URL: redisUrl, APP_ENV: 'staging' },
    isPinned: false,
    logFile,
  });
}

/** 499 is a client that left. */
const EXPECTED_STATUSES = new Set([200, 201, 207, 429, 499, 503]);

/** The lines of requests in the service's log whose status nothing explains. */
export async function findUnexpectedLines(logFile: string, rejected: ReadonlySet<string>): Promise<string[]> {
  const unexpected: string[] = [];
  for await (const line of createInterface({ input: createReadStream(logFile) })) {
    if (!line.includes('"msg":"request"')) continue;
    const { status, reqId } = JSON.parse(line) as { status: number; reqId: string };
    if (!EXPECTED_STATUSES.has(status) && !(status === 500 && rejected.has(reqId))) unexpected.push(line);
  }
  return unexpected;
}
