/*
 * Exits with 0 while the service in this container is ready, for the container's HEALTHCHECK, because the image has no
 * curl. It connects to the address that the service listens on: on Linux, 0.0.0.0 and :: then mean this machine. An agent
 * of its own ignores proxies of the environment, which fetch and the global agent may follow.
 */
import { Agent, get } from 'node:http';

const TIMEOUT_MS = 4_000;

const { HOST, PORT, METRICS_PORT } = process.env;
const host = HOST?.includes(':') ? `[${HOST}]` : HOST || '127.0.0.1';
const url = `http://${host}:${METRICS_PORT || PORT || 3000}/health/ready`;
try {
  const { status, text } = await ask();
  end(status === 200 ? 0 : 1, process.stdout, text);
} catch (error) {
  end(1, process.stderr, `${url}: ${(error as Error).message}`);
}

function ask(): Promise<{ status: number | undefined; text: string }> {
  return new Promise((resolve, reject) => {
    const options = { agent: new Agent(), signal: AbortSignal.timeout(TIMEOUT_MS) };
    const request = get(url, options, async (response) => {
      try {
        const chunks = await response.setEncoding('utf8').toArray();
        resolve({ status: response.statusCode, text: chunks.join('') });
      } catch (error) {
        reject(error);
      }
    });
    request.on('error', reject);
  });
}

/** Exits even if something is still open. */
function end(code: number, stream: NodeJS.WriteStream, text: string): void {
  stream.write(`${text}\n`, () => process.exit(code));
}
