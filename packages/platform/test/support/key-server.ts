import { request } from 'node:http';
import { freePort } from '@animal-store/limits/testing';
import type { Environment, Program } from '@animal-store/platform/testing';
import { run } from './process.js';

/** Of every `keys serve` that a test starts without one of its own */
export const TOKEN = 'a'.repeat(32);

export interface KeyServer {
  readonly url: string;
  readonly port: number;
  readonly program: Program;
  /** Runs a command with these options, or sends a text as it is. */
  keys(command: string, members?: unknown, headers?: Record<string, string>): Promise<KeyResponse>;
  /** Resolves with the exit code. */
  stop(signal?: NodeJS.Signals): Promise<unknown>;
}

interface KeyResponse {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests read bodies of every shape
  readonly body: any;
}

/** Starts `keys serve` as its users do, on a free port. Its log is JSON. */
export async function startKeyServer(environment: Environment): Promise<KeyServer> {
  const port = await freePort();
  const variables = { KEYS_TOKEN: TOKEN, LOG_LEVEL: 'debug', ...environment };
  const program = run('cli', ['keys', 'serve', '--port', String(port)], variables);
  await program.until(/keys are managed at/).catch((error: unknown) => {
    program.child.kill();
    throw error;
  });
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    port,
    program,
    async keys(command, members, headers) {
      const response = await fetch(`${url}/${command}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${TOKEN}`, ...headers },
        ...(members !== undefined && {
          body: typeof members === 'string' ? members : JSON.stringify(members),
        }),
      });
      return { status: response.status, headers: response.headers, body: await response.json() };
    },
    stop(signal = 'SIGTERM') {
      program.child.kill(signal);
      return program.ended;
    },
  };
}

/** Sends a request whose path is not normalised. Resolves with its status and its body. */
export function send(
  { port }: Pick<KeyServer, 'port'>,
  {
    body,
    ...options
  }: { method: string; path: string; headers?: Record<string, string>; body?: string | Buffer },
): Promise<{ readonly status: number | undefined; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const sent = request({ port, host: '127.0.0.1', agent: false, ...options }, async (response) => {
      const chunks = await response.setEncoding('utf8').toArray();
      resolve({ status: response.statusCode, text: chunks.join('') });
    });
    sent.on('error', reject).end(body);
  });
}
